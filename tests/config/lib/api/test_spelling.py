"""Which known name or path a caller probably meant."""

import pytest

from config.lib.api import spelling

NAMES = ["total_amount", "customer", "items", "sort", "amount", "checkout.authorized", "checkout.voided", "*"]
ROUTES = [["checkouts"], ["checkouts", "<id>", "capture"], ["checkouts", "<id>", "cancel"]]


@pytest.mark.rule("api.query")
@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("amout", "amount"),
        ("amuont", "amount"),
        ("Amount", "amount"),
        ("custmer", "customer"),
        ("customers", "customer"),
        ("itmes", "items"),
        ("srot", "sort"),
        ("totalAmuont", "total_amount"),
        ("checkout.captured", ""),
        ("colour", ""),
        ("order", ""),
        ("id", ""),
        ("", ""),
        ("customer" + "r" * 60, ""),
    ],
)
def test_a_name_is_similar_to_the_known_name_that_is_probably_meant(sent: str, meant: str) -> None:
    assert spelling.similar_name(sent, NAMES) == meant


@pytest.mark.rule("api.unknown_fields")
def test_only_names_that_were_not_sent_are_probably_meant() -> None:
    assert spelling.other_spellings(["amout", "customer", "custmer"], NAMES) == {"amount": "amout"}
    assert spelling.other_spellings(["x"] * 50 + ["totalAmount"], NAMES) == {"total_amount": "totalAmount"}


@pytest.mark.rule("api.unknown_fields")
def test_of_thousands_of_names_only_ten_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    monkeypatch.setattr(spelling, "get_close_matches", lambda name, _known, **_: compared.append(name) or [])
    spelling.other_spellings([f"total_amount_{number}" for number in range(5_000)], NAMES)
    assert len(compared) == 10
    spelling.similar_name("x" * 65, NAMES)
    assert len(compared) == 10, "a long name is not compared"


@pytest.mark.rule("api.not_found")
@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        (["checkout"], ["checkouts"]),
        (["checkouts", "x", "captures"], ["checkouts", "x", "capture"]),
        (["checkout", "x", "cancell"], ["checkouts", "x", "cancel"]),
        (["checkouts", "x"], []),
        (["checkouts", "x", "void"], []),
        ([""], []),
    ],
)
def test_a_path_is_similar_to_the_known_path_that_is_probably_meant(
    sent: list[str], meant: list[str]
) -> None:
    assert list(spelling.similar_path(sent, ROUTES)) == meant
