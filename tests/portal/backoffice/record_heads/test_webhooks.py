"""The tops of the pages of events, deliveries, attempts, subscriptions and endpoints, and of texts and shares."""

from collections.abc import Callable

import pytest
from django.test import Client

from checkout.models import Checkout
from config.lib import clock
from hosted_page.models import SmsMessage
from payments.models import Merchant
from portal.models import User
from tests import factories
from tests.portal import people
from tests.portal.backoffice.record_heads.test_operations import address_of, page_of, text_of
from webhooks.models import Attempt, Delivery, Endpoint, Event

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]
URL = "http://127.0.0.1:9/hooks"


@pytest.fixture
def delivery(acme: Merchant, at: Callable[[str], Checkout]) -> Delivery:
    """Return the delivery of checkout.authorized, which has not been sent yet."""
    factories.subscribe(acme, url=URL, event_types=["*"])
    at("authorized")
    return Delivery.objects.get()


def attempt_of(delivery: Delivery) -> Attempt:
    """Create a failed attempt of the delivery, and park the delivery."""
    now = clock.now()
    Delivery.objects.update(
        status="parked", attempt_count=1, next_attempt_at=None, lease_token=None, ended_at=now
    )
    return Attempt.objects.create(
        id=clock.new_id_of_same_time(delivery.pk),
        merchant=delivery.merchant,
        delivery=Delivery.objects.get(),
        number=1,
        event_type=delivery.event_type,
        started_at=now,
        ended_at=now,
        is_delivered=False,
        http_status=500,
        error_message="HTTP 500",
        duration_ms=38,
    )


class TestHeadings:
    def test_say_whether_it_is_an_event_or_its_delivery(self, operator: Client, delivery: Delivery) -> None:
        order = Checkout.objects.get().merchant_order_id
        assert text_of(operator, delivery).startswith("Delivery of checkout.authorized to 127.0.0.1 Waiting")
        assert text_of(operator, delivery.event).startswith(
            f"Event checkout.authorized of order {order} Waiting"
        )
        attempt = attempt_of(delivery)
        assert text_of(operator, attempt).startswith(
            "Attempt 1 to deliver checkout.authorized to 127.0.0.1 Parked"
        )


class TestDeliveries:
    def test_that_wait_say_when_they_are_sent(self, operator: Client, delivery: Delivery) -> None:
        assert f"to {URL}." in text_of(operator, delivery)
        assert "No action is needed: the service sends it at" in text_of(operator, delivery)

    def test_that_are_parked_say_what_the_endpoint_answered_and_who_acts(
        self, operator: Client, delivery: Delivery
    ) -> None:
        attempt = attempt_of(delivery)
        for row in (delivery, attempt):
            told = text_of(operator, row)
            assert "The endpoint answered HTTP 500 after 38 ms." in told and "Then choose Send again." in told
        assert f'class="button button-pen" href="{address_of(delivery)}"' in page_of(operator, attempt)
        assert f'class="button button-pen" href="{address_of(delivery)}"' in page_of(operator, delivery.event)
        Event.objects.update(superseded_at=clock.now())
        assert "Its hold is over" in text_of(operator, delivery)

    def test_that_are_superseded_explain_it(self, operator: Client, delivery: Delivery) -> None:
        now = clock.now()
        Event.objects.update(superseded_at=now)
        Delivery.objects.update(status="superseded", next_attempt_at=None, ended_at=now)
        for row in (delivery, delivery.event):
            told = text_of(operator, row)
            assert "Superseded at" in told and "so the service does not send it any more." in told

    def test_that_a_person_closed_need_no_action(self, operator: Client, delivery: Delivery) -> None:
        attempt_of(delivery)
        Delivery.objects.update(closed_at=clock.now())
        assert "No action is needed: a person closed it" in text_of(operator, delivery)


class TestEndpoints:
    def test_that_fail_say_since_when_and_who_acts(self, operator: Client, delivery: Delivery) -> None:
        row = delivery.subscription
        assert "Current" in text_of(operator, row)
        Endpoint.objects.create(subscription=row, failing_since=clock.now(), last_error="HTTP 500")
        for failing in (row, Endpoint.objects.get()):
            told = text_of(operator, failing)
            assert "Failing" in told and "Last error: HTTP 500." in told and "Tell the merchant" in told


class TestTexts:
    def test_say_what_the_carrier_reported(self, operator: Client, unpaid: Checkout) -> None:
        now = clock.now()
        about = {"checkout_uuid": unpaid.pk, "subject": unpaid.pk, "merchant": unpaid.merchant}
        row = SmsMessage.objects.create(
            kind="code", created_at=now, ends_at=now, phone="+447700900123", **about
        )
        assert "It has not been sent yet." in text_of(operator, row)
        SmsMessage.objects.update(sent_at=now, ended_at=now)
        assert "The sandbox has no carrier, so no text was sent." in text_of(operator, row)
        SmsMessage.objects.update(receipt="undelivered", refusal="landline")
        told = text_of(operator, row)
        assert "Undelivered" in told and "Reason: landline." in told and "Ask the payer" in told
        assert f'href="{address_of(unpaid)}"' in page_of(operator, row)


class TestShares:
    def test_say_what_is_asked_of_whose_order(self, operator: Client, at: Callable[[str], Checkout]) -> None:
        order = at("shared")
        paid, asked = order.payment_requests.order_by("position")
        assert f"A mate paid £20.00 of order {order.merchant_order_id}" in text_of(operator, paid)
        assert "No action is needed: the mate can pay until" in text_of(operator, asked)


class TestUsers:
    def test_say_whether_they_can_log_in(self, operator: Client, acme: Merchant) -> None:
        lea = people.join(acme)
        assert "This person logs in to the merchant’s portal." in text_of(operator, lea)
        assert "<wbr>@" in page_of(operator, lea)
        User.objects.filter(pk=lea.pk).update(is_active=False)
        told = text_of(operator, lea)
        assert "Disabled" in told and "tick Active below and save" in told


class TestMerchants:
    def test_say_whether_they_take_payments(self, operator: Client, acme: Merchant) -> None:
        assert "Acme Tickets takes payments." in text_of(operator, acme)
        factories.stop(acme)
        told = text_of(operator, acme)
        assert "Stopped" in told and "cannot create orders" in told and "choose Resume" in told
