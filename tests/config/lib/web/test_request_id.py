"""The request id is on every response, in the log of calls and in the history of an order."""

import re
from typing import Any

import pytest
from django.test import Client

from checkout.models import ApiCall, Checkout
from tests.conftest import Api
from tests.factories import order
from tests.portal import people
from tests.refusals import refused


class TestRequestId:
    @pytest.mark.rule("api.request_id")
    @pytest.mark.parametrize("request_id", ["a", "Order-1._x", "x" * 64])
    def test_is_kept_when_it_is_well_formed(self, api: Api, request_id: str) -> None:
        assert api.get("checkouts", x_request_id=request_id)["X-Request-Id"] == request_id
        assert (
            refused(api.get("checkouts/x", x_request_id=request_id), 404, "checkout_not_found")["request_id"]
            == request_id
        )

    @pytest.mark.rule("api.request_id")
    @pytest.mark.parametrize("request_id", ["", "x" * 65, "a b", "a/b", "ä", "a\nb", "<script>"])
    def test_is_replaced_when_it_is_not(self, api: Api, request_id: str) -> None:
        answer = api.get("checkouts/x", x_request_id=request_id)
        assert (
            re.fullmatch(r"[A-Za-z0-9._-]{1,64}", answer["X-Request-Id"])
            and answer["X-Request-Id"] != request_id
        )
        refused(answer, 404, "checkout_not_found")

    @pytest.mark.rule("api.request_id")
    def test_is_kept_with_the_call_and_the_change(self, api: Api) -> None:
        api.post("checkouts", order(), x_request_id="mine")
        assert ApiCall.objects.get().request_id == "mine"
        assert Checkout.objects.get().changes.get().request_id == "mine"

    def test_is_on_responses_of_every_kind(self, api: Api, captured: Checkout) -> None:
        made = api.post(f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r"})
        for answer in (made, api.get("checkouts"), api.client.get("/pay"), api.client.get("/livez")):
            assert answer["X-Request-Id"]

    @pytest.mark.rule("api.no_store")
    def test_responses_to_reads_and_writes_are_not_cached(self, api: Api, captured: Checkout) -> None:
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


@pytest.mark.rule("environment.logs")
class TestLogLine:
    def test_names_the_created_checkout_also_for_a_repeated_call(
        self, api: Api, caplog: pytest.LogCaptureFixture
    ) -> None:
        uuid = api.post("checkouts", order(), idempotency_key="once").json()["data"]["checkout_uuid"]
        assert api.post("checkouts", order(), idempotency_key="once").status_code == 201
        first, repeated = lines(caplog)[-2:]
        assert first["checkout"] == repeated["checkout"] == uuid
        assert first["merchant"] == str(api.merchant.pk) and first["client"] == str(api.key.client.pk)

    def test_names_no_checkout_if_none_was_created(self, api: Api, caplog: pytest.LogCaptureFixture) -> None:
        for _ in range(2):
            assert api.post("checkouts", order(total_amount=1), idempotency_key="once").status_code == 422
        assert not any("checkout" in line for line in lines(caplog))

    def test_names_the_checkout_of_a_page_in_the_portal(
        self, captured: Checkout, client: Client, caplog: pytest.LogCaptureFixture
    ) -> None:
        client.force_login(people.join(captured.merchant))
        client.get(f"/portal/checkouts/{captured.pk}")
        line = lines(caplog)[-1]
        assert (line["merchant"], line["checkout"]) == (str(captured.merchant_id), str(captured.pk))


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    found: list[Any] = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    return [line for line in found if line["event"] == "request"]
