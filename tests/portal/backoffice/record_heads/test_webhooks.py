"""The tops of event, delivery, attempt and endpoint pages."""

import html
import re

import pytest
from django.test import Client

from checkout import cancellations, captures
from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from tests.factories import CAUSE
from tests.portal.backoffice.conftest import URL
from tests.portal.backoffice.record_heads.tops import address_of, attempt_of, main_button, page_of, text_of
from webhooks.models import Attempt, Delivery, Endpoint, Event

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


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
        assert "No action is needed: the service sends it on" in text_of(operator, delivery)

    def test_that_are_parked_say_what_the_endpoint_answered_and_who_acts(
        self, operator: Client, delivery: Delivery
    ) -> None:
        attempt = attempt_of(delivery)
        for row in (delivery, attempt):
            told = text_of(operator, row)
            assert "The endpoint answered HTTP 500 after 38 ms." in told and "Then choose Send again." in told
        assert main_button(operator, delivery) == "Send again"
        assert "The button is on the delivery’s page." in text_of(operator, attempt)
        assert f'class="button button-pen" href="{address_of(delivery)}"' in page_of(operator, attempt)
        assert f'class="button button-pen" href="{address_of(delivery)}"' in page_of(operator, delivery.event)
        Event.objects.update(superseded_at=clock.now())
        for row in (delivery, attempt):
            assert "Its hold is over" in text_of(operator, row) and main_button(operator, row) == ""

    def test_that_are_superseded_explain_it(self, operator: Client, delivery: Delivery) -> None:
        now = clock.now()
        Event.objects.update(superseded_at=now)
        Delivery.objects.update(status="superseded", next_attempt_at=None, ended_at=now)
        for row in (delivery, delivery.event):
            told = text_of(operator, row)
            assert "Superseded on" in told and "so the service does not send it any more." in told

    @pytest.mark.parametrize(
        ("state", "how"),
        [("captured", "was captured"), ("cancelled", "was cancelled"), ("lapsed", "ended without a capture")],
    )
    def test_that_are_superseded_say_how_the_hold_ended(
        self, operator: Client, acme: Merchant, delivery: Delivery, state: str, how: str
    ) -> None:
        order = Checkout.objects.get()
        if state == "captured":
            captures.capture(acme, order.pk, cause=CAUSE)
        elif state == "cancelled":
            cancellations.cancel(acme, order.pk, cause=CAUSE)
        now = clock.now()
        Event.objects.filter(pk=delivery.event_id).update(superseded_at=now)
        Delivery.objects.filter(pk=delivery.pk).update(
            status="superseded", next_attempt_at=None, ended_at=now
        )
        for row in (delivery, delivery.event):
            assert f"the hold that it announces {how}, so" in text_of(operator, row)

    def test_that_are_delivered_say_when(self, operator: Client, delivery: Delivery) -> None:
        Delivery.objects.update(status="delivered", next_attempt_at=None, ended_at=clock.now())
        assert "The endpoint accepted it on" in text_of(operator, delivery.event)

    def test_that_a_person_closed_need_no_action(self, operator: Client, delivery: Delivery) -> None:
        attempt_of(delivery)
        Delivery.objects.update(closed_at=clock.now())
        assert "No action is needed: a person closed it" in text_of(operator, delivery)

    def test_offer_to_be_sent_although_the_hold_is_over_only_if_they_announce_one(
        self, operator: Client, delivery: Delivery
    ) -> None:
        attempt_of(delivery)
        assert ">Send again</button>" in page_of(operator, delivery)
        assert "even if the hold is over" not in text_of(operator, delivery)
        Event.objects.update(superseded_at=clock.now())
        page = page_of(operator, delivery)
        assert "even if the hold is over</button>" in page and ">Send again</button>" not in page, (
            "it is refused"
        )
        Event.objects.update(type="checkout.voided")
        assert "even if the hold is over" not in text_of(operator, delivery)

    def test_name_the_reason_that_the_endpoint_gave(self, operator: Client, delivery: Delivery) -> None:
        attempt = attempt_of(delivery)
        Attempt.objects.update(
            http_status=400, response_excerpt='{"error": "no_matching_signature",\n "key": "whsec_abc123"}'
        )
        reason = 'The endpoint answered HTTP 400 after 38 ms: “{"error": "no_matching_signature", "key": "[secret]"}”.'
        for row in (delivery, attempt):
            assert reason in text_of(operator, row)
        assert reason in html.unescape(operator.get("/admin/webhooks/attempt/").content.decode())

    def test_list_their_attempts_in_order(self, operator: Client, delivery: Delivery) -> None:
        for number in range(1, 6):
            attempt_of(delivery, number)
        page = operator.get(address_of(delivery)).content.decode()
        assert re.findall(r'data-label="Number">(\d)<', page) == ["1", "2", "3", "4", "5"]


class TestEndpoints:
    def test_that_fail_say_since_when_and_who_acts(self, operator: Client, delivery: Delivery) -> None:
        row = delivery.subscription
        assert "Current" in text_of(operator, row)
        Endpoint.objects.create(subscription=row, failing_since=clock.now(), last_error="HTTP 500")
        for failing in (row, Endpoint.objects.get()):
            told = text_of(operator, failing)
            assert "Failing" in told and "Last error: HTTP 500." in told and "Inform the merchant" in told
            assert main_button(operator, failing) == ""
