import pytest

from hosted_page import share_bar


def widths(*amounts: int) -> list[float]:
    return [float(part.width.rstrip("%")) for part in share_bar.parts([("A", amount) for amount in amounts])]


def test_parts_are_as_wide_as_their_amounts_and_fill_the_bar() -> None:
    assert widths(50, 30, 20) == [50, 30, 20]
    assert [part.x for part in share_bar.parts([("L", 50), ("F", 30), ("P", 20)])] == [
        "0.000%",
        "50.000%",
        "80.000%",
    ]


def test_the_smallest_part_is_visible_and_a_zero_part_is_not() -> None:
    found = widths(9_999_999, 1, 0)
    assert found == [96, share_bar.NARROWEST, 0] and sum(found) == 100


def test_narrow_parts_keep_the_order_of_their_amounts_and_equal_ones_stay_equal() -> None:
    found = widths(8100, *[100] * 19)
    assert found == pytest.approx([24, *[share_bar.NARROWEST] * 19])
    one, two, two_again, four, large = widths(100, 200, 200, 400, 9100)
    assert share_bar.NARROWEST == one < two == two_again < four < large
    assert sum((one, two, two_again, four, large)) == pytest.approx(100, abs=0.01)


def test_a_negative_part_does_not_reduce_the_others() -> None:
    assert widths(-500, 500, 500) == [0, 50, 50]


def test_a_part_too_narrow_for_a_letter_has_none() -> None:
    assert [part.label for part in share_bar.parts([("L", 95), ("F", 5)])] == ["L", ""]


def test_no_people_give_no_bar() -> None:
    assert share_bar.parts([]) == []
