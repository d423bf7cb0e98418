"""The desk of Stripe. The provider is the test double of Stripe's API (tests/payments/stripe_peer)."""

import urllib.request
from collections.abc import Sequence
from uuid import UUID

import requests
from django.http import HttpRequest
from django.test import RequestFactory
from pytest_django.fixtures import Settings
from stripe import Dispute, StripeClient

from payments.models import Operation, Payment
from payments.provider import Provider
from payments.providers.stripe.adapter import StripeProvider
from tests.payments.providers.conformance.desk import CallFailure, Card
from tests.payments.stripe_peer import events
from tests.payments.stripe_peer.remote import Remote
from tests.payments.stripe_peer.shops import Shop

CARDS = {
    Card.GOOD: "pm_card_visa",
    Card.DECLINED: "pm_card_chargeDeclined",
    Card.NO_MONEY: "pm_card_chargeDeclinedInsufficientFunds",
    Card.EXPIRED: "pm_card_chargeDeclinedExpiredCard",
    Card.ASKS: "pm_card_threeDSecure2Required",
    Card.REFUND_FAILS: "pm_card_refundFail",
    Card.DISPUTED: "pm_card_createDispute",
}
INTENT = "/v1/payment_intents"
PATHS = {
    "register": ("POST", INTENT),
    "authorize": ("POST", f"{INTENT}/[^/]+/confirm"),
    "capture": ("POST", f"{INTENT}/[^/]+/capture"),
    "void": ("POST", f"{INTENT}/[^/]+/cancel"),
    "refund": ("POST", "/v1/refunds"),
    "look_up": ("GET", "/v1/.*"),
    "movements": ("GET", "/v1/.*"),
}
FAULTS = {
    CallFailure.SILENT: {"mode": "reset", "when": "before"},
    CallFailure.DONE_SILENT: {"mode": "reset", "when": "after"},
    CallFailure.ERROR: {"mode": "error", "when": "before"},
    CallFailure.DONE_ERROR: {"mode": "error", "when": "after"},
    CallFailure.REPLAYED_ERROR: {"mode": "error", "when": "stored"},
}


class StripeDesk:
    """The test double of Stripe's API, and the settings with which the service uses it."""

    def __init__(self, peer: Remote, shop: Shop) -> None:
        self.provider: Provider = StripeProvider()
        self.peer, self.shop, self.dashboard = peer, shop, peer.client()
        self.secret = listen(self.dashboard, shop)
        self.settings = {
            "STRIPE_SECRET_KEY": "sk_test_peer",
            "STRIPE_PUBLISHABLE_KEY": "pk_test_peer",
            "STRIPE_WEBHOOK_SECRETS": ["whsec_former", self.secret],
            "STRIPE_IS_LIVE": False,
            "STRIPE_API": peer.address,
            "STRIPE_SCRIPT": f"{peer.address}/_peer/stripe.js",
        }

    def use(self, settings: Settings) -> None:
        """Change the settings for the rest of the test."""
        for name, value in self.settings.items():
            setattr(settings, name, value)

    def token(self, card: Card, subject: UUID) -> str:
        return str(self.peer.switch("confirmation_token", card=CARDS[card])["id"])

    def answer(self, payment: Payment, *, confirms: bool) -> None:
        asked = payment.operations.get(kind=Operation.Kind.AUTHORIZE)
        answer = b"answer=confirm" if confirms else b"answer=refuse"
        opener = urllib.request.build_opener(_NoRedirect)
        opener.open(urllib.request.Request(asked.action_url, answer), timeout=10).close()

    def confirm_again(self, payment: Payment) -> int:
        """Confirm the PaymentIntent again with a card that works, as the payer's browser can.

        Return the status code of the response.
        """
        intent = self.dashboard.v1.payment_intents.retrieve(payment.provider_reference)
        asked = {"key": "pk_test_peer", "client_secret": intent.client_secret, "number": "4242424242424242"}
        body = asked | {"return_url": payment.return_url}
        return requests.post(f"{self.peer.address}/_peer/confirm", json=body, timeout=10).status_code

    def make_calls_fail(self, verb: str, failure: CallFailure) -> None:
        method, path = PATHS[verb]
        self.peer.switch(
            "fault", method=method, path=path, times=times_of(method, failure), **FAULTS[failure]
        )

    def hold_less(self, amount: int) -> None:
        self.peer.switch("partial", amount=amount)

    def settle(self) -> None:
        self.peer.switch("settle_refunds")

    def age_keys(self) -> None:
        self.peer.switch("age_keys")

    def in_dashboard(self, kind: str, payment: Payment, amount: int) -> None:
        act(self.dashboard, kind, payment, amount)

    def refund_outside(self, payment: Payment, amount: int, pending: bool = False) -> None:
        if pending:
            self.peer.switch("pending_refund")
        act(self.dashboard, Operation.Kind.REFUND, payment, amount)

    def return_refund(self, reference: str) -> None:
        self.peer.switch("end_refund", refund=reference, status="failed")

    def dispute(self, payment: Payment, amount: int | None = None) -> None:
        """Dispute a payment, unless its card has already caused a dispute."""
        if amount is not None or not self._disputes(payment):
            intent = self.dashboard.v1.payment_intents.retrieve(payment.provider_reference)
            self.peer.switch("dispute", charge=intent.latest_charge, amount=amount)

    def decide(self, payment: Payment, *, is_won: bool) -> None:
        (dispute,) = (row for row in self._disputes(payment) if row.status not in ("won", "lost"))
        self.peer.switch("decide", dispute=dispute.id, status="won" if is_won else "lost")

    def appeal(self, payment: Payment) -> None:
        """Reopen the dispute that was decided last."""
        dispute = self._disputes(payment)[0]
        self.peer.switch("decide", dispute=dispute.id, status="appeal_under_review")

    def _disputes(self, payment: Payment) -> list[Dispute]:
        return self.dashboard.v1.disputes.list({"payment_intent": payment.provider_reference}).data

    def messages(self) -> Sequence[HttpRequest]:
        self.shop.messages.clear()
        self.peer.switch("deliver")
        return [message(body, signature) for body, signature in self.shop.messages]

    def forged(self) -> HttpRequest:
        return forged()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A handler that does not follow redirects, because the shop's page does not exist."""

    def redirect_request(self, *_: object) -> None:
        return None

    def http_error_303(self, request: object, answer: object, *_: object) -> object:
        return answer


def times_of(method: str, failure: CallFailure) -> int:
    """Return how many times a request must fail.

    A GET is retried once if its connection breaks, so both attempts must fail.
    """
    return 2 if method == "GET" and failure in (CallFailure.SILENT, CallFailure.DONE_SILENT) else 1


def listen(client: StripeClient, shop: Shop) -> str:
    """Subscribe the shop to all events, and return the secret that signs them."""
    endpoint = client.v1.webhook_endpoints.create({"url": shop.address, "enabled_events": ["*"]})
    return str(endpoint.secret)


def act(client: StripeClient, kind: str, payment: Payment, amount: int) -> None:
    """Capture, cancel or refund a payment as Stripe's dashboard does."""
    intents, intent = client.v1.payment_intents, payment.provider_reference
    if kind == "refund":
        client.v1.refunds.create({"payment_intent": intent, "amount": amount})
    elif kind == "capture":
        intents.capture(intent)
    else:
        intents.cancel(intent)


def forged() -> HttpRequest:
    body = b'{"id": "evt_1", "object": "event", "type": "payment_intent.succeeded"}'
    return message(body, events.signature("whsec_guessed", body, 2_000_000_000))


def message(body: bytes, signature: str) -> HttpRequest:
    headers = {"Stripe-Signature": signature}
    return RequestFactory().post(
        "/provider/notifications", body, content_type="application/json", headers=headers
    )
