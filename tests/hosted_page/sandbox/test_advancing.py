"""Time passes for one checkout, on request."""

from typing import Any

import pytest

from checkout.models import Checkout
from tests.conftest import Api
from tests.hosted_page.sandbox.calls import post
from webhooks.models import Delivery, Event, Subscription

pytestmark = pytest.mark.django_db


class TestAdvance:
    @pytest.mark.rule("sandbox.advance")
    def test_lets_a_hold_lapse(self, api: Api, held: Checkout) -> None:
        assert post(api, held, "advance", {"seconds": 119}).json()["data"]["status"] == "authorized"
        held.refresh_from_db()
        assert Event.objects.get().valid_until == held.capture_before, "no attempt starts after it"
        shown = post(api, held, "advance", {"seconds": 2}).json()["data"]
        assert (shown["status"], shown["void_reason"]) == ("voided", "auth_expired")
        held.refresh_from_db()
        assert held.payment is not None and held.payment.status == "voided"

    def test_lets_an_unpaid_one_expire(self, api: Api, unpaid: Checkout) -> None:
        assert post(api, unpaid, "advance", {"seconds": 3600}).json()["data"]["status"] == "expired"

    def test_settles_a_refund(self, api: Api, captured: Checkout) -> None:
        api.post(f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r"})
        assert post(api, captured, "advance", {"seconds": 10}).json()["data"]["status"] == "refunded"

    @pytest.mark.rule("sandbox.advance")
    def test_moves_nothing_that_has_happened(self, api: Api, captured: Checkout) -> None:
        before = api.get(f"checkouts/{captured.pk}").json()["data"]
        after = post(api, captured, "advance", {"seconds": 864_000}).json()["data"]
        assert after.pop("updated_at") > before.pop("updated_at")
        assert after == before

    def test_brings_the_next_attempt_of_its_deliveries_nearer(self, api: Api, unpaid: Checkout) -> None:
        Subscription.objects.create(merchant=api.merchant, url="http://127.0.0.1:9/", event_types=["*"])
        post(api, unpaid, "pay", {})
        before = Delivery.objects.get().next_attempt_at
        post(api, unpaid, "advance", {"seconds": 30})
        after = Delivery.objects.get().next_attempt_at
        assert before is not None and after is not None and (before - after).total_seconds() == 30

    @pytest.mark.rule("sandbox.advance")
    @pytest.mark.parametrize("seconds", [0, -1, 864_001, "10", 1.5, None, True])
    def test_takes_up_to_ten_days(self, api: Api, unpaid: Checkout, seconds: Any) -> None:
        answer = post(api, unpaid, "advance", {"seconds": seconds})
        assert (answer.status_code, answer.json()["error"]["param"]) == (422, "seconds")
        unpaid.refresh_from_db()
        assert unpaid.status == "created"
