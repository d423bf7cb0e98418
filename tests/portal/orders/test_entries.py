"""The entries of a timeline: states, calls, attempts, the bank and the ledger."""

import json
from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from checkout import captures, refunds
from checkout.models import ApiCall, Checkout, PaymentRequest
from config.lib import clock
from payments.models import Merchant
from portal.models import Role
from portal.orders import order, timeline
from portal.orders.order import read_order
from tests import factories, mates
from tests.conftest import Api
from tests.factories import CAUSE
from tests.outside import settle
from tests.portal import stage

pytestmark = pytest.mark.django_db


def titles(checkout: Checkout) -> list[str]:
    return [
        entry.title
        for entry in timeline.timeline_page(order.read_order(checkout.merchant, checkout.pk)).entries
    ]


class TestTimeline:
    @pytest.mark.rule("portal.timeline")
    def test_shows_statuses_calls_attempts_bank_and_ledger(self, api: Api, subscribed: Merchant) -> None:
        uuid = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        checkout = Checkout.objects.get(pk=uuid)
        stage.hold(checkout)
        stage.deliver(subscribed, 500, "HTTP 500", "upstream unavailable")
        assert api.post(f"checkouts/{uuid}/capture", {"amount": 1}).status_code == 422
        assert api.post(f"checkouts/{uuid}/capture").status_code == 200
        refunds.accept(subscribed, checkout.pk, ref="r-1", cause=CAUSE)
        found = titles(checkout)
        assert set(found) >= {
            "You created the checkout, 201",
            "Held",
            "Attempt 1 of checkout.authorized: 500 in 340\N{NO-BREAK SPACE}ms",
            "You called capture, 422 partial_capture_not_supported",
            "You called capture, 200",
            "Captured",
            "Refund accepted",
        }
        assert found[-1] == "You created the checkout, 201", "newest first"
        story = timeline.timeline_page(order.read_order(subscribed, checkout.pk))
        captured = next(entry for entry in story.entries if entry.title == "Captured")
        assert captured.text == "Taken from Visa ending 4242. Posted: £90.00 from the bank to you."
        assert captured.by == "By key “Key”"
        held = next(entry for entry in story.entries if entry.title == "Held")
        assert "You had until" in held.text and "You have until" not in held.text
        told_all = timeline.as_json(order.read_order(subscribed, checkout.pk))["timeline"]
        assert any(one["text"].endswith("By key “Key”.") for one in told_all)
        assert "£90.00 is on its way to Visa ending 4242." in [entry.text for entry in story.entries]
        assert captured.since_hold is not None and captured.since_hold > timedelta()

    @pytest.mark.rule("portal.timeline")
    def test_of_a_split_names_no_person(self, acme: Merchant, unpaid: Checkout) -> None:
        asked = mates.split(unpaid, 2000, 3000)
        stage.hold(unpaid)
        captures.capture(acme, unpaid.pk, cause=CAUSE)
        unpaid.payment_requests.update(name="Finn", phone="+447700900777")
        mates.pay(asked[0])
        mates.pump(unpaid.pk, rounds=3)
        words = stage.browser(stage.person(acme, Role.OWNER)).get(f"/portal/checkouts/{unpaid.pk}")
        text = words.content.decode()
        assert "1 lead and 2 mates" in text and "A mate paid £20.00" in text
        assert "It went back to the lead’s card." in text and "It goes back" not in text
        assert "The bank gave £20.00 back" in text
        assert "The bank took" not in text and "the lead −" not in text, "told once, and no ledger but theirs"
        assert "Finn" not in text and "7700900777" not in text
        assert "1 of 2" in text

    def test_of_a_refunded_split_order_says_where_the_money_went(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        def text() -> str:
            story = timeline.timeline_page(read_order(order.merchant, order.pk))
            return " ".join(entry.text for entry in story.entries)

        mates.pay(shares[0])
        assert mates.settled(shares[0]) == "reimbursed"
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        assert mates.settled(shares[0]) == "refunded"
        assert "It went back to the lead’s card." in text() and "meant for" not in text()
        assert "£90.00 went back to the cards that paid." in text() and "is on its way" not in text()

    def test_of_a_refused_refund_says_that_no_money_went_back(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        captures.capture(unpaid.merchant, pay(unpaid, mates.ACCOUNT_CLOSED).pk, cause=CAUSE)
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        settle(unpaid)
        story = timeline.timeline_page(read_order(unpaid.merchant, unpaid.pk))
        said = [entry.text for entry in story.entries if entry.title == "Refund accepted"]
        assert said == ["A refund of £90.00 to Visa ending 5126 was requested."]

    def test_of_a_refund_says_that_the_bank_refused_a_part(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0], card=mates.ACCOUNT_CLOSED)
        assert mates.settled(shares[0]) == "reimbursed"
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        settle(order)
        assert order.status == "refunding"
        page = stage.browser(stage.person(order.merchant, Role.OWNER)).get(f"/portal/checkouts/{order.pk}")
        words = page.content.decode()
        assert "£90.00 goes back to the cards that paid, but the bank has refused a part." in words
        assert "The bank has refused a part of it." in words

    def test_of_a_share_refunded_before_the_lead_got_it_says_so(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0])
        while PaymentRequest.objects.get(pk=shares[0].pk).status == "paying":
            mates.pump(order.pk)
        story = timeline.timeline_page(read_order(order.merchant, order.pk))
        assert "It goes back to the lead’s card." in " ".join(entry.text for entry in story.entries)
        PaymentRequest.objects.filter(pk=shares[0].pk).update(status="refunded")
        story = timeline.timeline_page(read_order(order.merchant, order.pk))
        assert "It was not passed on to the lead’s card." in " ".join(entry.text for entry in story.entries)

    def test_shows_the_latest_reads_as_a_separate_entry(self, acme: Merchant, captured: Checkout) -> None:
        ApiCall.objects.create(
            merchant=acme,
            client_uuid=uuid4(),
            checkout_uuid=captured.pk,
            method="GET",
            path=f"/api/merchant/v1/checkouts/{captured.pk}",
            request_id="req_1",
            status=200,
            created_at=clock.now(),
        )
        story = timeline.timeline_page(order.read_order(acme, captured.pk))
        assert [entry.title for entry in story.reads] == ["You read the checkout, 200"]
        assert story.entries[0].kind != "call"
        refunds.accept(acme, captured.pk, ref="r-1", cause=CAUSE)
        assert not timeline.timeline_page(order.read_order(acme, captured.pk)).reads, (
            "the page updates itself"
        )

    def test_is_complete_as_json(self, acme: Merchant, captured: Checkout) -> None:
        client = stage.browser(stage.person(acme, Role.VIEWER))
        subscribed = json.loads(client.get(f"/portal/checkouts/{captured.pk}/timeline.json").content)
        assert subscribed["checkout_uuid"] == str(captured.pk) and subscribed["amount"] == 9000
        assert [entry for entry in subscribed["timeline"] if entry.get("to") == "captured"]
        posted = [line for entry in subscribed["timeline"] for line in entry.get("postings", [])]
        assert sum(line["amount"] for line in posted) == 0 and posted
        assert str(captured.lead_id) not in json.dumps(subscribed), (
            "a person is known by another id to each merchant"
        )

    def test_costs_the_same_for_any_number_of_entries(self, api: Api, subscribed: Merchant) -> None:
        def cost(checkout: Checkout) -> int:
            with CaptureQueriesContext(connection) as queries:
                titles(checkout)
            return len(queries)

        uuid = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        checkout = Checkout.objects.get(pk=uuid)
        stage.hold(checkout)
        stage.deliver(subscribed, 500)
        cost(checkout)  # not counted, because the first call can need more statements
        before = cost(checkout)
        for _ in range(5):
            api.post(f"checkouts/{uuid}/capture", {"amount": 1})
        assert cost(checkout) == before
