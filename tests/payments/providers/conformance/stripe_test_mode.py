"""The desk of Stripe itself, in the test mode of the developer's account: STRIPE_TEST_KEY=sk_test_….

The test double has switches for the actions of payers, banks and staff. Here, Stripe's test cards, test
helpers, and evidence texts that decide a dispute replace these switches. A proxy in front of Stripe causes the
faults. The messages are Stripe's events, which this module signs as Stripe does.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from uuid import UUID

from django.http import HttpRequest
from playwright.sync_api import Page, sync_playwright
from pytest_django.fixtures import Settings
from stripe import StripeClient
from stripe.params import EventListParams, RefundListParams

from payments.models import Operation, Payment
from payments.provider import Provider
from payments.providers.stripe import books
from payments.providers.stripe.adapter import StripeProvider
from tests.browser import chromium
from tests.payments.providers.conformance import stripe
from tests.payments.providers.conformance.desk import CallFailure, Card
from tests.payments.providers.conformance.network import Fault, Network
from tests.payments.stripe_peer import events
from tests.payments.stripe_peer.remote import Remote

KEY = os.environ.get("STRIPE_TEST_KEY", "")
API = os.environ.get("STRIPE_TEST_API", "https://api.stripe.com")
SECRET = "whsec_of_nobody_but_us"
PATIENCE = 120.0  # seconds to wait for a change that Stripe makes with a delay
IS_STRIPE = API.endswith(".stripe.com")
# If there is no new event for this many seconds, all events have arrived.
QUIET = 3.0 if IS_STRIPE else 0.0
FAILING = "5126"  # the last four digits of the card to which refunds fail
# These tests cannot run in Stripe's test mode, which offers no way to hold less than the amount, dispute a part
# of a payment, or end a single refund.
BEYOND = (
    "test_held_for_less_than_requested_is_declined",
    "test_can_be_for_a_part",
    "test_that_is_returned_is_marked_as_returned",
    "test_is_pending_until_it_settles_or_fails",
    "test_names_the_payment_after_each_act",
)


class TestModeDesk:
    """Stripe's test mode, with a proxy in front of it that causes faults."""

    __test__ = False

    def __init__(self, settings: Settings, network: Network) -> None:
        self.provider: Provider = StripeProvider()
        self.network = network
        self.dashboard = StripeClient(KEY, base_addresses={"api": API}, max_network_retries=3)
        self.seen: set[str] = set()
        self.began = int(time.time()) - 5
        settings.STRIPE_SECRET_KEY, settings.STRIPE_PUBLISHABLE_KEY = KEY, "pk_test_unused"
        settings.STRIPE_WEBHOOK_SECRETS, settings.STRIPE_IS_LIVE = [SECRET], False
        settings.STRIPE_API = network.address

    def token(self, card: Card, subject: UUID) -> str:
        made = self.dashboard.v1.test_helpers.confirmation_tokens
        return made.create({"payment_method": stripe.CARDS[card]}).id

    def answer(self, payment: Payment, *, confirms: bool) -> None:
        """Press the button on the bank's page in a browser."""
        asked = payment.operations.get(kind=Operation.Kind.AUTHORIZE)
        with sync_playwright() as playwright, chromium.start(playwright) as browser:
            page = browser.new_page()
            page.goto(asked.action_url)
            _press(page, ("complete", "confirm") if confirms else ("fail", "refuse"))
            page.wait_for_timeout(1000)

    def make_calls_fail(self, verb: str, failure: CallFailure) -> None:
        method, path = stripe.PATHS[verb]
        self.network.faults += [Fault(method, path, failure)] * stripe.times_of(method, failure)

    def hold_less(self, amount: int) -> None:
        raise NotImplementedError("No test card holds less than it was asked for.")

    def settle(self) -> None:
        """Wait until all refunds to the failing card have failed.

        If the test double runs instead of Stripe, make it settle the refunds first.
        """
        if not IS_STRIPE:
            Remote(API).switch("settle_refunds")

        def are_ended() -> bool:
            asked: RefundListParams = {
                "created": {"gte": self.began},
                "limit": 100,
                "expand": ["data.charge"],
            }
            rows = self.dashboard.v1.refunds.list(asked)
            return not any(
                row.charge.payment_method_details.card.last4 == FAILING and row.status == "succeeded"  # type: ignore[union-attr]
                for row in rows.auto_paging_iter()
            )

        _wait_for(are_ended)

    def age_keys(self) -> None:
        """Do not age keys, because Stripe cannot do that. Operations are looked up by their ids anyway."""

    def in_dashboard(self, kind: str, payment: Payment, amount: int) -> None:
        stripe.act(self.dashboard, kind, payment, amount)

    def refund_outside(self, payment: Payment, amount: int, pending: bool = False) -> None:
        if pending:
            raise NotImplementedError("Only one test card of Stripe has pending refunds.")
        stripe.act(self.dashboard, Operation.Kind.REFUND, payment, amount)

    def return_refund(self, reference: str) -> None:
        raise NotImplementedError("Only one test card of Stripe has refunds that fail.")

    def dispute(self, payment: Payment, amount: int | None = None) -> None:
        """Wait for the dispute that this card causes automatically."""
        _wait_for(lambda: bool(self.provider.movements(payment).disputes))

    def decide(self, payment: Payment, *, is_won: bool) -> None:
        disputes = self.dashboard.v1.disputes
        (dispute,) = disputes.list({"payment_intent": payment.provider_reference}).data
        evidence = "winning_evidence" if is_won else "losing_evidence"
        disputes.update(dispute.id, {"evidence": {"uncategorized_text": evidence}, "submit": True})
        _wait_for(lambda: disputes.retrieve(dispute.id).status in ("won", "lost"))

    def messages(self) -> Sequence[HttpRequest]:
        """Return Stripe's events since the last call, in the order in which they occurred."""
        asked: EventListParams = {"created": {"gte": self.began}, "types": list(books.EVENTS), "limit": 100}
        sent: list[HttpRequest] = []
        heard_at = time.monotonic()
        while True:
            found = reversed(list(self.dashboard.v1.events.list(asked).auto_paging_iter()))
            fresh = [event for event in found if event.id not in self.seen]
            for event in fresh:
                self.seen.add(event.id)
                body = json.dumps(event.to_dict()).encode()
                sent.append(stripe.message(body, events.signature(SECRET, body, int(time.time()))))
                heard_at = time.monotonic()
            if not fresh and time.monotonic() - heard_at >= QUIET:
                return sent
            time.sleep(0.1)

    def forged(self) -> HttpRequest:
        return stripe.forged()


def _press(page: Page, words: tuple[str, str]) -> None:
    """Press the first button whose text contains one of the words. The button can be in any frame."""

    def is_pressed() -> bool:
        for frame in page.frames:
            for button in frame.locator("button").all():
                if button.is_visible() and any(word in button.inner_text().lower() for word in words):
                    button.click()
                    return True
        return False

    _wait_for(is_pressed)


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)
