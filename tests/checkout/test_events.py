"""Each action sends the right events to the merchant, with all their fields."""

import json
from typing import Any
from uuid import UUID

import pytest

from checkout import authorizations, cancellations, expiry
from checkout.models import Checkout, Customer
from config.lib import clock
from payments.models import Merchant
from payments.provider import CardUse
from payments.providers.sandbox import bank
from tests import factories
from tests.config import described
from tests.factories import CAUSE, CustomerFactory, make_late
from webhooks.models import Event, EventType

pytestmark = pytest.mark.django_db
CARD = "4242424242424242"


def event_body(event_type: str) -> dict[str, Any]:
    """Return the body of the only event of this type."""
    envelope: dict[str, Any] = json.loads(Event.objects.get(type=event_type).plain_body)
    return envelope


def paid_by(merchant: Merchant, lead: Customer) -> Checkout:
    """Create a checkout that this customer has paid."""
    checkout = factories.checkout(merchant)
    token = bank.tokenise(subject=checkout.pk, number=CARD)
    authorizations.authorize(checkout.pk, card=CardUse(token), lead=lead, cause=CAUSE)
    return checkout


def user_uuid(checkout: Checkout) -> str:
    event = Event.objects.get(checkout_uuid=checkout.pk)
    return str(json.loads(event.plain_body)["data"]["user_uuid"])


def lapse(checkout: Checkout) -> None:
    make_late(checkout)
    expiry.expire_one_if_due(checkout.pk)


def cancel(checkout: Checkout) -> None:
    cancellations.cancel(checkout.merchant, checkout.pk, cause=CAUSE)


class TestAuthorized:
    @pytest.mark.rule("event.authorized")
    def test_has_exactly_the_documented_fields(self, held: Checkout) -> None:
        envelope = event_body("checkout.authorized")
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
    def test_user_id_of_a_person_is_constant_at_a_merchant_and_differs_at_others(
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
    def test_by_the_merchant_has_exactly_the_documented_fields(self, held: Checkout) -> None:
        cancel(held)
        held.refresh_from_db()
        envelope = event_body("checkout.voided")
        assert envelope["created_at"] == clock.iso(held.voided_at)
        assert envelope["data"] == {
            "checkout_uuid": str(held.pk),
            "merchant_order_id": "A-20417",
            "status": "voided",
            "reason": "merchant_cancel",
        }

    @pytest.mark.rule("event.voided")
    def test_by_time_has_the_deadline_as_its_time(self, held: Checkout) -> None:
        lapse(held)
        held.refresh_from_db()
        envelope = event_body("checkout.voided")
        assert envelope["created_at"] == clock.iso(held.capture_before) == clock.iso(held.voided_at)
        assert envelope["data"]["reason"] == "auth_expired"


@pytest.mark.rule("opt_in.every_tick")
def _inside(field: dict[str, Any], schemas: dict[str, Any]) -> set[str]:
    """Return the field names of a nested object, or an empty set for a plain value."""
    return set(schemas[field["$ref"].rpartition("/")[2]]["properties"]) if "$ref" in field else set()


class TestOptedIn:
    def test_has_the_fields_of_its_table(self) -> None:
        """For the opt-in event's data, the OpenAPI document lists exactly these fields."""
        schemas = described.document()["components"]["schemas"]
        fields = schemas["OptedInData"]["properties"]
        parts = {name: _inside(field, schemas) for name, field in fields.items()}
        assert parts == {
            "customer_id": set(),
            "subject": set(),
            "order": {"merchant_order_id", "checkout_uuid", "payment_request_uuid"},
            "customer": {"name", "email", "phone"},
            "opt_in": {"email_marketing", "sms_marketing", "opted_in_at", "placement", "text_version"},
        }


@pytest.mark.rule("event.types")
class TestTypes:
    def test_are_the_four_of_the_specification(self) -> None:
        assert {kind.value for kind in EventType} == {
            "checkout.authorized",
            "checkout.voided",
            "marketing.opted_in",
            "webhook.test",
        }
