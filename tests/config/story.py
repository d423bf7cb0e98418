"""One run through the whole API. Its requests and responses are the examples in the API's document."""

import json
import re
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from checkout import tasks
from config.openapi.examples import BASE
from payments.models import Merchant
from tests import factories
from tests.conftest import Api
from webhooks import delivery, outbox
from webhooks.models import Event, EventType

TICKETS = {
    "item_ref": "standing-blue",
    "name": "Standing ticket, Blue Room",
    "quantity": 4,
    "unit_price": 2250,
    "currency": "GBP",
    "category": "ticket",
    "custom_data": {
        "event_id": "evt-881",
        "event_start": "2026-11-20T19:30:00.000Z",
        "time_zone": "Europe/London",
    },
}
FEE = {
    "item_ref": "booking-fee",
    "name": "Booking fee",
    "quantity": 4,
    "unit_price": 175,
    "currency": "GBP",
    "category": "fee",
}
DISCOUNT = {
    "item_ref": "early-bird",
    "name": "Early-bird discount",
    "quantity": 1,
    "unit_price": -150,
    "currency": "GBP",
    "category": "discount",
}
ORDER = {
    "merchant_order_id": "A-20417",
    "total_amount": 9550,
    "currency": "GBP",
    "return_url": "https://shop.example/thanks",
    "cancel_url": "https://shop.example/basket",
    "customer": {"phone": "+447700900123", "name": "Lea Fontaine", "locale": "en-GB"},
    "items": [TICKETS, FEE, DISCOUNT],
}
# Tests do not use DNS, so the receiver is on this machine. The examples show the second URL instead.
RECEIVER, SHOWN_RECEIVER = "http://127.0.0.1:9001/webhooks", "https://shop.example/webhooks"
ENDPOINT = {"url": RECEIVER, "event_types": ["checkout.authorized", "checkout.voided"]}
OPT_IN = {
    "customer_id": "7b1e0c52-6a34-4d0e-9a52-0d1a7d2f9c11",
    "subject": "lead",
    "order": {"merchant_order_id": "A-20417", "checkout_uuid": "", "payment_request_uuid": None},
    "customer": {"name": "Lea Fontaine", "email": "lea@example.com", "phone": "+447700900123"},
    "opt_in": {
        "email_marketing": True,
        "sms_marketing": True,
        "opted_in_at": "2026-06-01T18:32:07.418Z",
        "placement": "success_page",
        "text_version": 1,
    },
}
# Values that differ in every run, with their replacements for a comparison of two runs. The values that SECRETS
# matches are replaced even in the stored examples.
VOLATILE = (
    (r"/pay/offers/[\w:-]+", "/pay/offers/TOKEN"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME"),
    (r"client_[0-9a-f]{24}", "CLIENT"),
    (r"req_[0-9a-f]{32}", "REQUEST"),
    (r'(?<="next_cursor": ")[^"]+', "CURSOR"),
)
SECRETS = (
    (r"whsec_[A-Za-z0-9+/=]+", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
    (r'(?<="client_secret": ")[^"]+', "sk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"),
    (r'(?<="token": ")[^"]+', "AAECAwQFBgcICQoLDA0ODxAREhMUFR"),
    (r'(?<="access_token": ")[^"]+', "AAECAwQFBgcICQoLDA0ODxAREhMUFR"),
)


def as_text(examples: dict[str, Any]) -> str:
    """Return the examples in the form in which the file stores them.

    Placeholders replace the service's address, secrets and the receiver's address.
    """
    text = json.dumps(examples, indent=2, ensure_ascii=False)
    for pattern, stand_in in SECRETS:
        text = re.sub(pattern, stand_in, text)
    return text.replace(settings.BASE_URL, BASE).replace(RECEIVER, SHOWN_RECEIVER) + "\n"


def comparable(text: str) -> Any:
    """Return the examples with a placeholder for each value that differs between runs."""
    for pattern, word in VOLATILE:
        text = re.sub(pattern, word, text)
    return json.loads(text)


class Story:
    """A recorder of requests and responses. It stores the first one for each name, status or error code."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.kept: dict[str, dict[str, Any]] = {"requests": {}, "answers": {}, "errors": {}, "events": {}}

    def call(self, name: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a call. Store an error under its code, or a successful response with its request under the name."""
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        prefix = "" if path.startswith("/") else "/api/merchant/v1/"
        names = {header.replace("_", "-"): value for header, value in headers.items()}
        sent = {"authorization": f"Bearer {self.api.token}"} | names
        response = self.api.client.generic(
            method,
            f"{prefix}{path}",
            raw,
            content_type=sent.pop("content-type", "application/json"),
            headers=sent,
        )
        answer: Any = response.json() if response.content else None
        if response.status_code >= 400:
            self.kept["errors"].setdefault(answer["error"]["code"], answer)
            return answer
        if isinstance(body, dict):
            self.kept["requests"].setdefault(name, body)
        if answer is not None:
            self.kept["answers"].setdefault(f"{name} {response.status_code}", answer)
        return answer

    def send_all_calls(self) -> dict[str, Any]:
        """Send all calls, and return the stored requests, responses, errors and events."""
        self._get_token()
        self._register()
        paid = self._pay()
        self._refuse_before_capture(paid)
        self._capture_and_refund(paid)
        self._share()
        self._pledge()
        self._dispute()
        self._refuse(paid)
        self._cancel()
        self._events(paid)
        return self.kept

    def _get_token(self) -> None:
        key = self.api.key
        body = {
            "grant_type": "client_credentials",
            "client_id": key.client.client_id,
            "client_secret": key.client_secret,
        }
        self.call("get_token", "POST", "/oauth/token", body)
        revoked = {name: value for name, value in body.items() if name != "grant_type"}
        self.call("revoke_token", "POST", "/oauth/revoke", revoked | {"token": self.api.get_token()})

    def _register(self) -> None:
        self.call("read_subscription", "GET", "webhooks/subscription")
        for _ in range(2):
            self.call("register_subscription", "POST", "webhooks/subscription", ENDPOINT)
        self.call("read_subscription", "GET", "webhooks/subscription")

    def _create(self) -> str:
        created = self.call("create_checkout", "POST", "checkouts", ORDER)
        return str(created["data"]["checkout_uuid"])

    def _pay(self) -> str:
        paid = self._create()
        pay = f"/api/sandbox/v1/checkouts/{paid}/pay"
        self.call("sandbox_pay", "POST", pay, {"card": "4000000000009995"})
        self.call("sandbox_pay", "POST", pay, {"card": "4242424242424242", "phone": "+447700900123"})
        self.call("sandbox_pay", "POST", pay, {})
        (claimed,) = delivery.claim(slots=1, general_slots=1)
        failed = (500, "HTTP 500", 212, "upstream unavailable")
        delivery.record_results([delivery.Result(claimed.delivery_id, claimed.lease_token, *failed)])
        self.call("list_delivery_attempts", "GET", "webhooks/deliveries")
        return paid

    def _refuse_before_capture(self, held: str) -> None:
        self.call("", "POST", f"checkouts/{held}/capture", {"amount": 5000})
        self.call("", "POST", f"checkouts/{held}/refund", {"merchant_refund_ref": "R-1"})

    def _capture_and_refund(self, held: str) -> None:
        self.call("capture_checkout", "POST", f"checkouts/{held}/capture", {})
        self.call("", "POST", f"checkouts/{held}/refund", {"merchant_refund_ref": "R-1", "amount": 5000})
        self.call("", "POST", f"checkouts/{held}/cancel", {})
        refund = {"merchant_refund_ref": "R-20417", "reason": "Show moved to January"}
        self.call("refund_checkout", "POST", f"checkouts/{held}/refund", refund)
        tasks.finish_operations()
        self.call("sandbox_advance", "POST", f"/api/sandbox/v1/checkouts/{held}/advance", {"seconds": 60})
        self.call("refund_checkout", "POST", f"checkouts/{held}/refund", refund)
        self.call("read_checkout", "GET", f"checkouts/{held}")

    def _pledge(self) -> None:
        pledged = self._create()
        helper = f"/api/sandbox/v1/checkouts/{pledged}"
        shares = [{"name": "Finn", "amount": 2250}]
        self.call("sandbox_split", "POST", f"{helper}/split", {"name": "Lea", "shares": shares})
        self.call("sandbox_pledge_share", "POST", f"{helper}/pledge-share", {"card": "5555555555554444"})

    def _dispute(self) -> None:
        disputed = self._create()
        helper = f"/api/sandbox/v1/checkouts/{disputed}"
        self.call("sandbox_pay", "POST", f"{helper}/pay", {"card": "4000000000000259"})
        self.call("", "POST", f"checkouts/{disputed}/capture", {})
        self.call("sandbox_decide_dispute", "POST", f"{helper}/decide-dispute", {"result": "won"})
        self.call("sandbox_advance", "POST", f"{helper}/advance", {"seconds": 5})
        self.call("sandbox_decide_dispute", "POST", f"{helper}/decide-dispute", {"result": "won"})

    def _share(self) -> None:
        shared = self._create()
        helper = f"/api/sandbox/v1/checkouts/{shared}"
        self.call("sandbox_pay_share", "POST", f"{helper}/pay-share", {"payment_request_uuid": shared})
        self.call("sandbox_pay", "POST", f"{helper}/pay", {"shares": [{"name": "Finn", "amount": 2250}]})
        self.call("", "POST", f"checkouts/{shared}/capture", {})
        self.call("sandbox_pay_share", "POST", f"{helper}/pay-share", {"card": "5555555555554444"})
        Merchant.objects.filter(pk=self.api.merchant.pk).update(opt_in_enabled=True)
        self.call("read_opt_in_link", "GET", f"checkouts/{shared}/opt-in-link?placement=email_link")
        self.call("sandbox_opt_in", "POST", f"{helper}/opt-in", {"email": "lea@example.com"})

    def _refuse(self, refunded: str) -> None:
        self._refuse_malformed()
        self._refuse_callers()
        other = self._create()
        self.call("list_checkouts", "GET", "checkouts?limit=1")
        self.call("", "POST", f"checkouts/{other}/refund", {"merchant_refund_ref": "R-20417"})
        self.call("", "POST", f"checkouts/{refunded}/capture", {})
        self.call("", "GET", "checkouts/0193c2a1-7e44-7b0c-9d1f-5a6e0c41b2d8")
        self.call("", "GET", "nothing")
        self.call("", "DELETE", "checkouts")

    def _refuse_malformed(self) -> None:
        self.call("", "POST", "checkouts", b'{"merchant_order_id": "A-1", "merchant_order_id": "A-2"}')
        self.call("", "POST", "checkouts", b" " * (256 * 1024 + 1))
        self.call("", "POST", "checkouts", b"a=1", **{"content-type": "application/x-www-form-urlencoded"})
        self.call("", "POST", "checkouts", ORDER | {"total_amount": 9500})
        self.call(
            "", "POST", "checkouts", ORDER | {"return_url": "/thanks", "items": [TICKETS | {"quantity": "4"}]}
        )
        self.call("", "POST", "checkouts", ORDER, Idempotency_Key="x" * 256)
        for order in (ORDER, ORDER | {"merchant_order_id": "A-20418"}):
            self.call("create_checkout", "POST", "checkouts", order, Idempotency_Key="order-20417")
        self.call("", "GET", "checkouts?cursor=abc")

    def _refuse_callers(self) -> None:
        self.call("", "GET", "checkouts", authorization="")
        self.call("", "GET", "checkouts", authorization="Bearer nobodys")
        narrow = self.api.get_token(scope="checkouts:read")
        self.call("", "POST", "checkouts", ORDER, authorization=f"Bearer {narrow}")
        for is_stopped in (True, False):
            factories.stop(self.api.merchant, is_stopped=is_stopped)
            self.call("create_checkout", "POST", "checkouts", ORDER)

    def _cancel(self) -> None:
        held = self._create()
        self.call("sandbox_pay", "POST", f"/api/sandbox/v1/checkouts/{held}/pay", {})
        self.call("cancel_checkout", "POST", f"checkouts/{held}/cancel", {"reason": "Sold out"})
        for _ in range(3):
            self.call("rotate_signing_secret", "POST", "webhooks/secret/rotate", {"revoke_previous": False})
        self.call("end_subscription", "DELETE", "webhooks/subscription")

    def _events(self, paid: str) -> None:
        opted_in = OPT_IN | {"order": {**OPT_IN["order"], "checkout_uuid": paid}}  # type: ignore[dict-item]
        outbox.emit(self.api.merchant, EventType.OPTED_IN, opted_in, at=timezone.now())
        outbox.emit(self.api.merchant, EventType.TEST, {}, at=timezone.now())
        # The feed leaves out events of the last second, because open transactions might still add events to it.
        written_before = F("written_at") - timedelta(seconds=5)
        Event.objects.update(written_at=written_before)
        self.call("list_events", "GET", "events?limit=1")
        for event in Event.objects.order_by("-created_at"):
            self.kept["events"][event.type] = json.loads(event.plain_body)
