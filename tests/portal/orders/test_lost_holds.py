"""The sentence that says why a hold lapsed."""

from datetime import timedelta

import pytest

from checkout import cancellations
from checkout.models import ApiCall, Checkout
from config.lib import clock
from config.lib.database import partitions
from payments.models import Merchant, Operation, Payment
from portal.models import Role
from portal.orders import order, timeline
from tests import factories
from tests.conftest import Api
from tests.factories import CAUSE
from tests.portal import stage
from tests.portal.orders.conftest import lapse
from webhooks import lookup
from webhooks.models import EVENTS

pytestmark = pytest.mark.django_db


def why(checkout: Checkout) -> str:
    return timeline.timeline_page(order.read_order(checkout.merchant, checkout.pk)).why_voided


@pytest.mark.rule("portal.timeline")
class TestWhyVoided:
    def test_names_the_events_sent_and_the_responses(self, subscribed: Merchant, held: Checkout) -> None:
        sent = stage.deliver(subscribed, None, "could not connect")
        assert sent.status == "pending"
        lapse(held)
        words = why(held)
        assert words.startswith("We sent checkout.authorized at ")
        assert "Your endpoint answered nothing and no capture came, so the hold ended at " in words

    def test_of_an_endpoint_that_answered_but_did_not_capture(
        self, subscribed: Merchant, held: Checkout
    ) -> None:
        stage.deliver(subscribed, 200)
        lapse(held)
        assert "Your endpoint answered 200, but no capture came" in why(held)

    def test_without_an_endpoint(self, held: Checkout) -> None:
        lapse(held)
        assert why(held).startswith(
            "You had no endpoint for checkout.authorized when the hold began, so we did"
        )
        owner, page = stage.browser(stage.person(held.merchant, Role.OWNER)), f"/portal/checkouts/{held.pk}"
        words = owner.get(page).content.decode()
        assert "Add your endpoint</a>, so that" in words and "Send a test event" not in words
        stage.saved(held.merchant)
        words = owner.get(page).content.decode()
        assert "Add your endpoint" not in words and "Send a test event" in words

    def test_of_an_endpoint_that_was_saved_after_the_hold_began(self, held: Checkout) -> None:
        stage.saved(held.merchant)
        lapse(held)
        assert lookup.events_about(held.pk).filter(type="checkout.voided").exists()
        assert why(held).startswith("You had no endpoint for checkout.authorized when the hold began")

    @pytest.mark.parametrize(
        ("days_of_log", "words"),
        [(2, "The log of that time is no longer kept."), (4, "You had no endpoint for checkout.authorized")],
    )
    def test_with_deleted_events_says_so(self, held: Checkout, days_of_log: int, words: str) -> None:
        lapse(held)
        then, today = clock.now() - timedelta(days=3), clock.now().date()
        Checkout.objects.filter(pk=held.pk).update(authorized_at=then, voided_at=then + timedelta(minutes=2))
        partitions.make(EVENTS, today - timedelta(days=days_of_log), today)
        assert words in why(held)

    def test_of_a_capture_that_came_too_late(self, api: Api, subscribed: Merchant) -> None:
        uuid = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        held = stage.hold(Checkout.objects.get(pk=uuid))
        stage.deliver(subscribed, 200)
        lapse(held)
        assert api.post(f"checkouts/{uuid}/capture").status_code == 409
        assert "its capture came at" in why(held) and "too late" in why(held)

    def test_of_a_capture_that_was_refused(self, api: Api, subscribed: Merchant) -> None:
        uuid = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        held = stage.hold(Checkout.objects.get(pk=uuid))
        api.post(f"checkouts/{uuid}/capture", {"amount": 1})
        lapse(held)
        assert "we answered once with 422 partial_capture_not_supported" in why(held)

    def test_of_a_capture_that_the_bank_did_not_answer(self, api: Api, subscribed: Merchant) -> None:
        uuid = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        held = stage.hold(Checkout.objects.get(pk=uuid))
        ApiCall.objects.create(
            merchant=held.merchant,
            client_uuid=uuid,
            checkout_uuid=uuid,
            method="POST",
            path=f"/merchant/v1/checkouts/{uuid}/capture",
            request_id="r-1",
            status=504,
            error_code="outcome_unknown",
            created_at=clock.now(),
        )
        lapse(held)
        assert why(held).startswith("Your server called capture in time, but the bank did not answer, so")

    def test_of_a_capture_whose_call_is_not_kept(self, subscribed: Merchant, held: Checkout) -> None:
        stage.deliver(subscribed, 200)
        Operation.objects.create(
            payment=Payment.objects.get(),
            kind="capture",
            amount=held.amount,
            state="failed",
            created_at=clock.now(),
            ended_at=clock.now(),
        )
        lapse(held)
        assert why(held).startswith("Your server called capture, and no capture was accepted")

    def test_is_empty_for_other_outcomes(self, acme: Merchant, held: Checkout) -> None:
        cancellations.cancel(acme, held.pk, cause=CAUSE)
        assert why(held) == ""
