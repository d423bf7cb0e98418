"""The `custom_data` of an item is limited in size and returned unchanged. A ticket's fields are validated."""

from typing import Any

import pytest
from django.db.models.expressions import RawSQL

from checkout.api.serializers import MAX_OWN_BYTES
from checkout.models import Bill
from tests.checkout.orders import accept, refuse, refuse_item, ticket
from tests.conftest import Api
from tests.factories import item

pytestmark = [pytest.mark.django_db, pytest.mark.rule("create.custom_data")]


@pytest.mark.parametrize(
    "custom",
    [
        "text",
        5,
        [],
        ["a"],
        {"a": "\x00"},
        {"a\x00": 1},
        {"a": [{"b": "x\x00"}]},
        {str(number): number for number in range(51)},
        {"a": {str(number): number for number in range(50)}},
        {"a": "x" * 9_000},
        {"a": "é" * 4_100},
        {"a": [1e308] * 27},  # each number has 5 bytes in the request, but PostgreSQL stores 309 digits
        {"a": [{"b": [-1.5e-300] * 27}]},
        {"a": {"b": {"c": {"d": {}}}}},
        {"a": [[[[]]]]},
    ],
    ids=lambda custom: repr(custom)[:30],
)
def test_custom_data_that_is_too_large_is_refused(api: Api, custom: Any) -> None:
    refuse_item(api, "custom_data", custom_data=custom)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("event_id", 5),
        ("event_id", None),
        ("event_start", "tomorrow"),
        ("event_start", "2026-06-01T18:30:00"),
        ("event_start", "2026-13-01T18:30:00Z"),
        ("event_start", 1_780_000_000),
        *(("time_zone", name) for name in ("Mars/X", "localtime", "Factory")),
        ("time_zone", "../../etc/passwd"),
        ("time_zone", ""),
        ("time_zone", 1),
        ("time_zone", None),
    ],
)
def test_ticket_fields_of_custom_data_are_validated(api: Api, field: str, value: Any) -> None:
    refuse(api, f"items[0].custom_data.{field}", items=ticket(**{field: value}))


@pytest.mark.parametrize(
    "custom",
    [
        {},
        {"event_id": "e-1", "event_start": "2026-06-01T20:30:00+02:00", "time_zone": "Europe/Paris"},
        {"__proto__": {"polluted": True}, "constructor": None, "$where": "1"},
        {"a": {"b": {"c": ["d", 1.5, None, False]}}},
        {str(number): number for number in range(50)},
        {"<b>": "<script>", "": " ", "seat": "\u202eA1", "line": "one\ntwo"},
        {"big": 2**63 - 1, "small": -(2**63), "exact": 0.1},
        {"huge": 1e30, "tiny": 1e-30},  # PostgreSQL stores the first number as an integer of 31 digits
    ],
    ids=lambda custom: repr(custom)[:30],
)
def test_unusual_custom_data_is_returned_unchanged(api: Api, custom: dict[str, Any]) -> None:
    assert accept(api, items=[item(custom_data=custom)])["items"][0]["custom_data"] == custom


@pytest.mark.parametrize(
    "custom",
    [
        {"a": [1e308] * 25},
        {"a": [5e-324] * 24},
        {"a": [1e18] * 300},
        {"a": [12.5] * 1_600},
        {"a": "\x1f" * 1_360},
        {"a": "\\" * 4_090},
        {"a": "é" * 4_090},
    ],
    ids=lambda custom: repr(custom)[:16],
)
def test_stored_custom_data_is_never_longer_than_the_limit(api: Api, custom: dict[str, Any]) -> None:
    assert accept(api, items=[item(custom_data=custom)])["items"][0]["custom_data"] == custom
    kept = RawSQL("regexp_replace((lines -> 0 -> 6)::text, '([:,]) ', '\\1', 'g')", ())
    (text,) = Bill.objects.annotate(kept=kept).values_list("kept", flat=True)
    assert len(text.encode()) <= MAX_OWN_BYTES


def test_custom_data_of_other_categories_is_not_validated(api: Api) -> None:
    lines = [item(category="merchandise", custom_data={"event_id": 5, "time_zone": "Mars/X"})]
    assert accept(api, items=lines)["items"][0]["custom_data"]["event_id"] == 5


def test_custom_data_can_be_null_or_omitted(api: Api) -> None:
    assert accept(api, items=[item(custom_data=None)])["items"][0]["custom_data"] is None
    assert accept(api)["items"][0]["custom_data"] is None
