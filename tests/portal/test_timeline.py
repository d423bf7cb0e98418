import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from checkout import deadlines, refunds, transitions
from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from portal import order, timeline
from portal.models import Role
from tests import factories, mates
from tests.conftest import Api
from tests.factories import CAUSE
from tests.portal import stage
from webhooks import subscriptions
from webhooks.models import Attempt

pytestmark = pytest.mark.django_db


def titles(checkout: Checkout) -> list[str]:
    return [entry.title for entry in timeline.of(order.read(checkout.merchant, checkout.pk)).entries]


def why(checkout: Checkout) -> str:
    return timeline.of(order.read(checkout.merchant, checkout.pk)).why_voided


@pytest.fixture
def told(acme: Merchant) -> Merchant:
    subscriptions.register(acme, url=stage.URL, event_types=["*"])
    return acme


def lapse(checkout: Checkout) -> None:
    """Two minutes pass: all that has happened lies that much further back."""
    earlier = timedelta(seconds=150)
    rows = Checkout.objects.filter(pk=checkout.pk)
    rows.update(capture_before=clock.now(), authorized_at=clock.now() - timedelta(seconds=120))
    for attempt in Attempt.objects.all():
        Attempt.objects.filter(pk=attempt.pk).update(started_at=attempt.started_at - earlier)
    deadlines.keep_of(checkout.pk)


class TestTimeline:
    def test_tells_states_calls_attempts_bank_and_ledger(self, api: Api, told: Merchant) -> None:
        uuid = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        checkout = Checkout.objects.get(pk=uuid)
        stage.hold(checkout)
        stage.deliver(told, 500, "HTTP 500", "upstream unavailable")
        assert api.post(f"checkouts/{uuid}/capture", {"amount": 1}).status_code == 422
        assert api.post(f"checkouts/{uuid}/capture").status_code == 200
        refunds.accept(told, checkout.pk, ref="r-1", cause=CAUSE)
        found = titles(checkout)
        assert set(found) >= {
            "You created the checkout, 201",
            "Held",
            "The bank holds £90.00 on Visa ending 4242",
            "Attempt 1 of checkout.authorized: 500 in 0.34 s",
            "You called capture, 422 partial_capture_not_supported",
            "You called capture, 200",
            "The bank took £90.00 from Visa ending 4242",
            "Captured",
            "Refund accepted",
        }
        assert found[-1] == "You created the checkout, 201", "newest first"
        story = timeline.of(order.read(told, checkout.pk))
        took = next(entry for entry in story.entries if entry.title.startswith("The bank took"))
        assert took.text == "Posted: the bank +£90.00, you +£90.00."
        captured = next(entry for entry in story.entries if entry.title == "Captured")
        assert captured.text == "£90.00 is yours. By key “Key”."
        assert captured.since_hold is not None and captured.since_hold > timedelta()

    def test_of_a_split_names_nobody(self, acme: Merchant, unpaid: Checkout) -> None:
        asked = mates.split(unpaid, 2000, 3000)
        stage.hold(unpaid)
        transitions.capture(acme, unpaid.pk, cause=CAUSE)
        unpaid.payment_requests.update(name="Finn", phone="+447700900777")
        mates.pay(asked[0])
        mates.pump(unpaid.pk, rounds=3)
        words = stage.browser(stage.person(acme, Role.OWNER)).get(f"/portal/checkouts/{unpaid.pk}")
        text = words.content.decode()
        assert "1 lead and 2 mates" in text and "A mate paid £20.00" in text
        assert "Finn" not in text and "7700900777" not in text
        assert "1 of 2" in text

    def test_as_json_is_whole(self, acme: Merchant, captured: Checkout) -> None:
        client = stage.browser(stage.person(acme, Role.VIEWER))
        told = json.loads(client.get(f"/portal/checkouts/{captured.pk}/timeline.json").content)
        assert told["checkout_uuid"] == str(captured.pk) and told["amount"] == 9000
        assert [entry for entry in told["timeline"] if entry.get("to") == "captured"]
        posted = [line for entry in told["timeline"] for line in entry.get("postings", [])]
        assert sum(line["amount"] for line in posted) == 0 and posted
        assert str(captured.lead_id) not in json.dumps(told), (
            "a person is known by another id to each merchant"
        )

    def test_costs_the_same_however_much_happened(self, api: Api, told: Merchant) -> None:
        def cost(checkout: Checkout) -> int:
            with CaptureQueriesContext(connection) as queries:
                titles(checkout)
            return len(queries)

        uuid = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        checkout = Checkout.objects.get(pk=uuid)
        stage.hold(checkout)
        stage.deliver(told, 500)
        cost(checkout)  # the first prepares its statements
        before = cost(checkout)
        for _ in range(5):
            api.post(f"checkouts/{uuid}/capture", {"amount": 1})
        assert cost(checkout) == before


class TestWhyVoided:
    def test_names_what_was_sent_and_answered(self, told: Merchant, held: Checkout) -> None:
        sent = stage.deliver(told, None, "could not connect")
        assert sent.status == "pending"
        lapse(held)
        words = why(held)
        assert words.startswith("We sent checkout.authorized at ")
        assert "Your endpoint answered nothing and no capture came, so the hold ended at " in words

    def test_of_an_endpoint_that_answered_but_did_not_capture(self, told: Merchant, held: Checkout) -> None:
        stage.deliver(told, 200)
        lapse(held)
        assert "Your endpoint answered 200, but no capture came" in why(held)

    def test_without_an_endpoint(self, held: Checkout) -> None:
        lapse(held)
        assert why(held).startswith("We had no webhook endpoint to tell")

    def test_of_a_capture_that_came_too_late(self, api: Api, told: Merchant) -> None:
        uuid = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        held = stage.hold(Checkout.objects.get(pk=uuid))
        stage.deliver(told, 200)
        lapse(held)
        assert api.post(f"checkouts/{uuid}/capture").status_code == 409
        assert "its capture came at" in why(held) and "too late" in why(held)

    def test_of_a_capture_that_was_refused(self, api: Api, told: Merchant) -> None:
        uuid = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        held = stage.hold(Checkout.objects.get(pk=uuid))
        api.post(f"checkouts/{uuid}/capture", {"amount": 1})
        lapse(held)
        assert "we answered once with 422 partial_capture_not_supported" in why(held)

    def test_says_nothing_of_any_other_end(self, acme: Merchant, held: Checkout) -> None:
        transitions.cancel(acme, held.pk, cause=CAUSE)
        assert why(held) == ""
