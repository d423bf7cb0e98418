"""The request id: on every answer, in the log of calls and in the history."""

import re

import pytest

from checkout.models import ApiCall, Checkout
from tests.conftest import Api
from tests.factories import order
from tests.refusals import refused


class TestRequestId:
    @pytest.mark.rule("api.request_id")
    @pytest.mark.parametrize("given", ["a", "Order-1._x", "x" * 64])
    def test_is_kept_when_it_is_well_formed(self, api: Api, given: str) -> None:
        assert api.get("checkouts", x_request_id=given)["X-Request-Id"] == given
        assert (
            refused(api.get("checkouts/x", x_request_id=given), 404, "checkout_not_found")["request_id"]
            == given
        )

    @pytest.mark.rule("api.request_id")
    @pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a/b", "ä", "a\nb", "<script>"])
    def test_is_replaced_when_it_is_not(self, api: Api, given: str) -> None:
        answer = api.get("checkouts/x", x_request_id=given)
        assert (
            re.fullmatch(r"[A-Za-z0-9._-]{1,64}", answer["X-Request-Id"]) and answer["X-Request-Id"] != given
        )
        refused(answer, 404, "checkout_not_found")

    @pytest.mark.rule("api.request_id")
    def test_is_kept_with_the_call_and_the_change(self, api: Api) -> None:
        api.post("checkouts", order(), x_request_id="mine")
        assert ApiCall.objects.get().request_id == "mine"
        assert Checkout.objects.get().changes.get().request_id == "mine"

    def test_is_on_answers_of_every_kind(self, api: Api, captured: Checkout) -> None:
        made = api.post(f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r"})
        for answer in (made, api.get("checkouts"), api.client.get("/pay"), api.client.get("/livez")):
            assert answer["X-Request-Id"]

    @pytest.mark.rule("api.no_store")
    def test_reads_and_writes_are_never_stored(self, api: Api, captured: Checkout) -> None:
        answers = [
            api.get("checkouts"),
            api.get(f"checkouts/{captured.pk}"),
            api.post("checkouts", order()),
            api.post(f"checkouts/{captured.pk}/capture"),
            api.post(f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r"}),
            api.get("webhooks/deliveries"),
        ]
        assert {answer["Cache-Control"] for answer in answers} == {"no-store"}


pytestmark = pytest.mark.django_db
