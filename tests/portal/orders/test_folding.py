"""How entries in a timeline are merged, and in which order they are shown."""

from datetime import UTC, datetime, timedelta
from typing import Any

from portal.orders.entries import Entry
from portal.orders.folding import fold_entries

AT = datetime(2026, 11, 25, 9, 37, tzinfo=UTC)


def entry(kind: str, title: str, at_second: float = 0, **more: Any) -> Entry:
    at: datetime = AT + timedelta(seconds=at_second)
    return Entry(at, kind, "still", "bank", title, **more)


def titles_and_texts(*oldest_first: Entry) -> list[tuple[str, str]]:
    return [(one.title, one.text) for one in fold_entries(oldest_first[::-1])]


def test_a_bank_entry_is_merged_into_its_status_entry() -> None:
    took = entry("bank", "Took", part_of="captured", as_part="Taken from a card.")
    captured = entry("state", "Captured", 0.1, key="captured", text="Yours.")
    assert titles_and_texts(took, captured) == [("Captured", "Yours. Taken from a card.")]
    assert [title for title, _ in titles_and_texts(took)] == ["Took"], "its state is on another page"


def test_a_later_bank_entry_is_not_merged_into_the_status() -> None:
    failed = entry("state", "Refund failed", key="refund_failed")
    again = entry("bank", "Giving back: failed", 9, part_of="refund_failed", as_part="Closed.")
    assert titles_and_texts(failed, again) == [("Giving back: failed", ""), ("Refund failed", "")]
    assert (
        titles_and_texts(failed, again, entry("state", "Refund failed", 10, key="refund_failed"))[0][1]
        == "Closed."
    )


def test_a_call_is_listed_below_the_status_that_it_caused() -> None:
    captured = entry("state", "Captured", 1, cause="req_1")
    answered = entry("call", "You called capture, 200", 1.3, request_id="req_1")
    later = entry("call", "You called capture, 200 again", 2, request_id="req_2")
    found = fold_entries([later, answered, captured])
    assert [one.title for one in found] == [later.title, "Captured", answered.title]
    assert found[2].at == captured.at


def test_a_call_with_a_reused_request_id_keeps_its_place() -> None:
    held = entry("call", "You created the checkout, 201", 0, request_id="mine")
    captured = entry("state", "Captured", 1, cause="mine")
    assert [title for title, _ in titles_and_texts(held, captured)] == [
        "Captured",
        "You created the checkout, 201",
    ]


def read(at_second: float, title: str = "You read the checkout, 200", actor: str = "client:1") -> Entry:
    return entry("call", title, at_second, actor=actor, facts={"method": "GET"})


def test_reads_in_a_row_are_one_entry() -> None:
    found = fold_entries([read(9), read(7), read(5), entry("state", "Captured", 4), read(3)])
    assert [one.title for one in found] == [
        "You read the checkout, 200, 3 times",
        "Captured",
        "You read the checkout, 200",
    ]
    assert (
        found[0].at == AT + timedelta(seconds=9) and found[0].text == "First at 09:37:05, last at 09:37:09."
    )


def test_reads_by_another_key_or_with_another_answer_stay_apart() -> None:
    found = fold_entries([read(9, actor="client:2"), read(7), read(5, title="You read the checkout, 429")])
    assert len(found) == 3
