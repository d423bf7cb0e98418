"""A new order is accepted only if its total is within the limits and equals the sum of its items."""

from typing import Any

import pytest

from tests.checkout.orders import accept, refuse, refuse_item
from tests.conftest import Api
from tests.factories import item, order
from tests.refusals import nothing_moves, refused

NO_INTEGERS = ["100", "１００", " 7 ", "1_000", 1.0, 1e2, 1.5, True, [], {}]


@pytest.mark.rule("api.integers", "create.limits")
class TestTotalAmount:
    @pytest.mark.parametrize(
        "value", [-1, 0, 100_000_000, 99_999_999_999, 2**31, 2**63 - 1, *NO_INTEGERS], ids=repr
    )
    def test_out_of_range_or_not_an_integer_is_refused(self, api: Api, value: Any) -> None:
        refuse(api, "total_amount", total_amount=value)

    @pytest.mark.parametrize("value", [-(10**9), 10**9, 2**63 - 1, *NO_INTEGERS], ids=repr)
    def test_of_an_item_has_the_same_limits(self, api: Api, value: Any) -> None:
        refuse_item(api, "quantity", quantity=value)
        refuse_item(api, "unit_price", unit_price=value)

    def test_with_decimals_is_refused_with_the_unit(self, api: Api) -> None:
        error = refuse(api, "total_amount", total_amount=56.00)
        assert "Must be an integer in minor units" in error["message"]
        assert "5600 is £56.00" in error["message"]

    @pytest.mark.parametrize("quantity", [0, -1, 10_001])
    def test_counts_one_to_ten_thousand_pieces(self, api: Api, quantity: int) -> None:
        refuse_item(api, "quantity", quantity=quantity)

    def test_at_its_limits_is_accepted(self, api: Api) -> None:
        dear = [item(quantity=1, unit_price=99_999_999)]
        assert accept(api, total_amount=99_999_999, items=dear)["amount"] == 99_999_999
        cheap = [item(quantity=1, unit_price=1), item(quantity=10_000, unit_price=0)]
        assert accept(api, total_amount=1, items=cheap)["amount"] == 1


class TestArithmetic:
    @pytest.mark.rule("create.arithmetic")
    @pytest.mark.parametrize(
        ("total", "lines", "expected"),
        [
            (8999, [(4, 2250, "ticket")], 9000),
            (9001, [(4, 2250, "ticket")], 9000),
            (9000, [(4, 2250, "ticket"), (1, 150, "fee")], 9150),
            (9000, [(4, 2250, "ticket"), (1, -500, "discount")], 8500),
            (1, [(10_000, 99_999_999, "ticket")], 999_999_990_000),
            (1, [(1, 0, "ticket")], 0),
            (1, [(1, 100, "ticket"), (1, -200, "discount")], -100),
        ],
    )
    def test_that_does_not_add_up_is_refused_with_the_figures(
        self, api: Api, total: int, lines: list[tuple[int, int, str]], expected: int
    ) -> None:
        items = [item(quantity=many, unit_price=price, category=category) for many, price, category in lines]
        with nothing_moves():
            answer = api.post("checkouts", order(total_amount=total, items=items))
            error = refused(answer, 422, "invalid_amount_arithmetic", "total_amount")
        facts = {"expected": expected, "actual": total, "difference": total - expected}
        assert error["details"] == [{"param": "total_amount", **facts}]

    @pytest.mark.rule("create.currency", "create.signs")
    @pytest.mark.parametrize(
        ("field", "line"),
        [
            ("currency", {"currency": "EUR"}),
            ("unit_price", {"unit_price": -1}),
            ("unit_price", {"unit_price": 0, "category": "discount"}),
            ("unit_price", {"unit_price": 1, "category": "discount"}),
        ],
    )
    def test_of_an_invalid_line_names_the_line(self, api: Api, field: str, line: dict[str, Any]) -> None:
        refuse(api, f"items[1].{field}", items=[item(), item(**line)])

    @pytest.mark.rule("create.signs")
    def test_adds_fees_and_subtracts_discounts(self, api: Api) -> None:
        lines = [
            item(),
            *(item(quantity=1, unit_price=100, category=name) for name in ("fee", "shipping", "tax")),
            item(quantity=2, unit_price=-150, category="discount"),
        ]
        assert accept(api, total_amount=9000, items=lines)["amount"] == 9000


@pytest.mark.rule("create.currency")
class TestCurrency:
    @pytest.mark.parametrize(
        "code", ["usd", "US", "USDD", "XXX", "ZZZ", "DEM", "GBP ", "ＧＢＰ", 840, ["GBP"]], ids=repr
    )
    def test_that_is_not_in_use_is_refused(self, api: Api, code: Any) -> None:
        refuse(api, "currency", currency=code, items=[item(currency=code)])

    @pytest.mark.parametrize(("code", "shown"), [("JPY", "¥9,000"), ("BHD", "9.000"), ("USD", "90.00")])
    def test_decides_the_number_of_decimals(self, api: Api, code: str, shown: str) -> None:
        read = accept(api, currency=code, items=[item(currency=code)])
        assert shown in api.client.get(f"/pay?id={read['checkout_uuid']}").content.decode()
