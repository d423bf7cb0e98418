"""Values from one request's body never appear in the result for a different request."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from rest_framework.serializers import Serializer, ValidationError

from config.lib.api import fields, view
from tests.conftest import Api

SECONDS = 10


class AmountIn(Serializer[Any]):
    """A serializer for an amount up to the limit in its context.

    If the context has the barrier `others`, the validation waits for the other threads.
    """

    amount = fields.Integer(minimum=1, maximum=100)
    reason = fields.Text(required=False)

    def validate_amount(self, amount: int) -> int:
        if others := self.context.get("others"):
            others.wait(SECONDS)
        if amount > self.context["limit"]:
            raise ValidationError(f"Must be {self.context['limit']} or less.")
        return amount


def errors(body: Any, **context: Any) -> Any:
    with pytest.raises(ValidationError) as refused:
        view.read_body(AmountIn, body, context)
    return refused.value.detail


class TestBody:
    def test_is_read_independently_of_earlier_bodies(self) -> None:
        for _ in range(3):
            assert view.read_body(AmountIn, {"amount": 5, "reason": "x"}, {"limit": 5}) == {
                "amount": 5,
                "reason": "x",
            }
            assert view.read_body(AmountIn, {"amount": 4}, {"limit": 4}) == {"amount": 4}
            assert errors({"amount": 5}, limit=3) == {"amount": ["Must be 3 or less."]}
            assert errors({}, limit=3) == {"amount": ["Is required."]}
            assert set(errors([], limit=3)) == set(errors(None, limit=3)) == {""}

    @pytest.mark.rule("api.unknown_fields")
    @pytest.mark.parametrize(
        "name",
        [
            "totalAmount",
            "total-amount",
            "TotalAmount",
            "Total_Amount",
            "total_amout",
            "total_amuont",
            "totalamount",
        ],
    )
    def test_names_the_other_spelling_of_a_missing_field(self, name: str) -> None:
        class Order(fields.Body):
            total_amount = fields.Integer(minimum=1, maximum=100)

        with pytest.raises(ValidationError) as refused:
            view.read_body(Order, {name: 5}, {})
        words = f"Is required. You sent {name}: write total_amount."
        assert refused.value.detail == {"total_amount": [words]}
        for sent in ({"totalAmount": 5, "total_amount": 500}, {"amount": 5}, {}):
            with pytest.raises(ValidationError) as refused:
                view.read_body(Order, sent, {})
            assert "You sent" not in str(refused.value.detail)

    def test_is_not_mixed_with_a_body_that_another_thread_reads(self) -> None:
        others = Barrier(8)

        def read(limit: int) -> dict[str, Any]:
            return view.read_body(AmountIn, {"amount": limit}, {"limit": limit, "others": others})

        with ThreadPoolExecutor(8) as threads:
            for _ in range(5):
                limits = range(1, 9)
                assert [found["amount"] for found in threads.map(read, limits)] == list(limits)


@pytest.mark.rule("api.query")
class TestQuery:
    @pytest.mark.parametrize("name", ["merchantOrderId", "merchant-order-id", "MERCHANT_ORDER_ID"])
    def test_names_the_right_spelling_of_a_parameter(self, api: Api, name: str) -> None:
        error = api.get(f"checkouts?{name}=A-1").json()["error"]
        assert (error["code"], error["param"]) == ("validation_failed", name)
        assert (
            error["details"][0]["message"]
            == "Is not a parameter of this call. Did you mean merchant_order_id?"
        )

    @pytest.mark.parametrize(
        ("name", "meant"), [("limt", "limit"), ("stauts", "status"), ("created_befor", "created_before")]
    )
    def test_names_the_parameter_that_is_probably_meant(self, api: Api, name: str, meant: str) -> None:
        error = api.get(f"checkouts?{name}=1").json()["error"]
        assert error["details"][0]["message"] == f"Is not a parameter of this call. Did you mean {meant}?"

    def test_names_the_value_that_is_probably_meant(self, api: Api) -> None:
        for sent, question in (("captred", " Did you mean captured?"), ("paid", "")):
            error = api.get(f"checkouts?status={sent}").json()["error"]
            words = "Must be one of created, authorized, captured, voided, expired, refunding, refunded."
            assert error["details"][0]["message"] == f"{words}{question}"

    def test_names_all_parameters_if_none_is_similar(self, api: Api) -> None:
        error = api.get("checkouts?order=A-1").json()["error"]
        assert "The call accepts status, merchant_order_id, " in error["message"]
