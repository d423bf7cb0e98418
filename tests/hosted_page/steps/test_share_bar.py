from hosted_page.steps import share_bar


def widths(*amounts: int) -> list[float]:
    return [float(part.width.rstrip("%")) for part in share_bar.parts([("A", amount) for amount in amounts])]


def test_parts_are_as_wide_as_their_amounts_and_fill_the_bar() -> None:
    assert widths(50, 30, 20) == [50, 30, 20]
    assert [part.x for part in share_bar.parts([("L", 50), ("F", 30), ("P", 20)])] == [
        "0.000%",
        "50.000%",
        "80.000%",
    ]


def test_the_smallest_part_is_seen_and_nothing_is_drawn_for_nothing() -> None:
    found = widths(9_999_999, 1, 0)
    assert found == [98.5, share_bar.NARROWEST, 0] and sum(found) == 100


def test_a_part_too_narrow_for_a_letter_has_none() -> None:
    assert [part.label for part in share_bar.parts([("L", 95), ("F", 5)])] == ["L", ""]


def test_nobody_is_no_bar() -> None:
    assert share_bar.parts([]) == []
