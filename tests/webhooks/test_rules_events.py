"""What each verb tells the merchant, field by field, and what it makes of what still waits."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from checkout import ending, transitions
from checkout.api.schema import shapes
from checkout.models import Checkout, Customer
from config.lib import clock
from payments.models import Merchant
from payments.provider import CardUse
from payments.providers.sandbox import bank
from tests import factories
from tests.config import described
from tests.factories import CAUSE, CustomerFactory, make_late
from tests.webhooks.story import claim_one, record
from webhooks import delivery, outbox, subscriptions
from webhooks.models import Delivery, Event, EventType

pytestmark = pytest.mark.django_db

CARD = "4242424242424242"
CHECKOUT = UUID("01890000-0000-7000-8000-000000000001")


def told(event_type: str) -> dict[str, Any]:
    """The envelope of the one event of a type."""
    envelope: dict[str, Any] = json.loads(Event.objects.get(type=event_type).plain_body)
    return envelope


def paid_by(merchant: Merchant, lead: Customer) -> Checkout:
    """A new checkout that this customer has paid."""
    checkout = factories.checkout(merchant)
    token = bank.tokenise(subject=checkout.pk, number=CARD)
    transitions.authorize(checkout.pk, card=CardUse(token), lead=lead, cause=CAUSE)
    return checkout


def user_uuid(checkout: Checkout) -> str:
    event = Event.objects.get(checkout_uuid=checkout.pk)
    return str(json.loads(event.plain_body)["data"]["user_uuid"])


def lapse(checkout: Checkout) -> None:
    make_late(checkout)
    ending.expire_one_if_due(checkout.pk)


def cancel(checkout: Checkout) -> None:
    transitions.cancel(checkout.merchant, checkout.pk, cause=CAUSE)


def capture(checkout: Checkout) -> None:
    transitions.capture(checkout.merchant, checkout.pk, cause=CAUSE)


@pytest.fixture
def subscribed(acme: Merchant) -> None:
    subscriptions.register(acme, url="http://127.0.0.1:9/hook", event_types=["*"])


class TestAuthorized:
    @pytest.mark.rule("event.authorized")
    def test_tells_these_six_and_nothing_else(self, held: Checkout) -> None:
        envelope = told("checkout.authorized")
        assert envelope["created_at"] == clock.iso(held.authorized_at)
        assert envelope["data"] == {
            "checkout_uuid": str(held.pk),
            "merchant_order_id": "A-20417",
            "status": "authorized",
            "amount": 9000,
            "currency": "GBP",
            "user_uuid": user_uuid(held),
        }

    @pytest.mark.rule("opt_in.customer")
    def test_names_a_person_alike_at_one_merchant_and_otherwise_at_another(
        self, acme: Merchant, rival: Merchant
    ) -> None:
        lea, finn = CustomerFactory.create(), CustomerFactory.create()
        once, again = user_uuid(paid_by(acme, lea)), user_uuid(paid_by(acme, lea))
        others = {user_uuid(paid_by(acme, finn)), user_uuid(paid_by(rival, lea))}
        assert once == again
        assert len({once, str(lea.pk)} | others) == 4
        assert UUID(once).version == 4, "random: it tells nothing of the time"


class TestVoided:
    @pytest.mark.rule("cancel.held", "event.voided")
    def test_by_the_merchant_tells_these_four_and_nothing_else(self, held: Checkout) -> None:
        cancel(held)
        held.refresh_from_db()
        envelope = told("checkout.voided")
        assert envelope["created_at"] == clock.iso(held.voided_at)
        assert envelope["data"] == {
            "checkout_uuid": str(held.pk),
            "merchant_order_id": "A-20417",
            "status": "voided",
            "reason": "merchant_cancel",
        }

    @pytest.mark.rule("event.voided")
    def test_by_time_tells_the_deadline(self, held: Checkout) -> None:
        lapse(held)
        held.refresh_from_db()
        envelope = told("checkout.voided")
        assert envelope["created_at"] == clock.iso(held.capture_before) == clock.iso(held.voided_at)
        assert envelope["data"]["reason"] == "auth_expired"


@pytest.mark.rule("opt_in.every_tick")
def _inside(field: dict[str, Any], things: dict[str, Any]) -> set[str]:
    """The names of an object's own fields, none of a value's."""
    return set(things[field["$ref"].rpartition("/")[2]]["properties"]) if "$ref" in field else set()


class TestOptedIn:
    def test_has_the_fields_of_its_table(self) -> None:
        """As the API's document tells them."""
        things = described.document()["components"]["schemas"]
        fields = things[shapes.EVENT_DATA[EventType.OPTED_IN]]["properties"]
        parts = {name: _inside(field, things) for name, field in fields.items()}
        assert parts == {
            "customer_id": set(),
            "subject": set(),
            "order": {"merchant_order_id", "checkout_uuid", "payment_request_uuid"},
            "customer": {"name", "email", "phone"},
            "opt_in": {"email_marketing", "sms_marketing", "opted_in_at", "placement", "text_version"},
        }


@pytest.mark.rule("event.types")
class TestTypes:
    def test_are_spec_s_four(self) -> None:
        assert {kind.value for kind in EventType} == {
            "checkout.authorized",
            "checkout.voided",
            "marketing.opted_in",
            "webhook.test",
        }


@pytest.mark.usefixtures("subscribed")
class TestTheEndOfAHold:
    @pytest.mark.rule("event.superseded")
    @pytest.mark.parametrize("verb", [capture, cancel, lapse])
    def test_supersedes_its_own_word_and_leaves_its_release_due(
        self, held: Checkout, verb: Callable[[Checkout], None]
    ) -> None:
        verb(held)
        of_hold = Delivery.objects.get(event__type="checkout.authorized")
        assert (of_hold.status, of_hold.next_attempt_at) == ("superseded", None)
        claimed = delivery.claim(slots=9, general_slots=9)
        assert [row.event_type for row in claimed] == ["checkout.voided"] * (verb is not capture)

    def word(self, acme: Merchant, checkout_uuid: UUID = CHECKOUT) -> Delivery:
        now = clock.now()
        until = now + timedelta(seconds=120)
        event = outbox.emit(
            acme, EventType.AUTHORIZED, {}, at=now, checkout_uuid=checkout_uuid, valid_until=until
        )
        return event.deliveries.get()

    def status_after_the_end(self, due: Delivery) -> str:
        outbox.supersede(CHECKOUT, clock.now())
        due.refresh_from_db()
        return due.status

    def test_supersedes_what_was_to_be_retried(self, acme: Merchant) -> None:
        due = self.word(acme)
        record(claim_one(), 503, "HTTP 503")
        assert self.status_after_the_end(due) == "superseded"

    @pytest.mark.rule("event.superseded")
    @pytest.mark.parametrize(("http_status", "status"), [(200, "delivered"), (503, "superseded")])
    def test_leaves_the_attempt_in_flight_its_result(
        self, acme: Merchant, http_status: int, status: str
    ) -> None:
        due, claimed = self.word(acme), claim_one()
        assert self.status_after_the_end(due) == "pending" and due.lease_token == claimed.lease_token
        record(claimed, http_status)
        due.refresh_from_db()
        assert (due.status, due.next_attempt_at) == (status, None)

    @pytest.mark.parametrize(("http_status", "status"), [(200, "delivered"), (404, "parked")])
    def test_leaves_what_has_ended(self, acme: Merchant, http_status: int, status: str) -> None:
        due = self.word(acme)
        record(claim_one(), http_status)
        assert self.status_after_the_end(due) == status

    def test_ends_no_other_hold(self, acme: Merchant) -> None:
        assert self.status_after_the_end(self.word(acme, uuid4())) == "pending"

    def test_ends_no_other_word_of_the_checkout(self, acme: Merchant) -> None:
        for event_type in (EventType.OPTED_IN, EventType.VOIDED):
            event = outbox.emit(acme, event_type, {}, at=clock.now(), checkout_uuid=CHECKOUT)
            assert self.status_after_the_end(event.deliveries.get()) == "pending"
