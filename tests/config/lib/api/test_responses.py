"""A response serializer writes a row as the API sends it. The row's status decides which fields it has."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework import serializers as drf

from config.lib.api.responses import Computed, Constant, OpenChoice, Out, Time

AT = datetime(2026, 6, 1, 18, 30, 0, 123_456, UTC)


class DoorOut(Out):
    """An example: a door always has a key while it is closed, and can have a guest at any time."""

    status = OpenChoice(("open", "closed"))
    key = drf.CharField(required=False)
    guest = drf.CharField(required=False)
    opens_at = Time(allow_null=True)
    room = Computed(lambda door: door.number, drf.IntegerField())

    ALWAYS = {"key": ("closed",)}
    SOMETIMES = {"guest": ("open", "closed")}


def door(**facts: Any) -> SimpleNamespace:
    return SimpleNamespace(
        **{"status": "open", "key": "k", "guest": None, "opens_at": AT, "number": 7} | facts
    )


def test_leaves_out_fields_that_the_status_does_not_have() -> None:
    assert DoorOut.write(door()) == {"status": "open", "opens_at": "2026-06-01T18:30:00.123Z", "room": 7}


def test_sends_fields_that_the_status_always_has_even_if_empty() -> None:
    assert DoorOut.write(door(status="closed", key=None))["key"] is None


def test_sends_optional_fields_of_a_status_only_with_a_value() -> None:
    assert DoorOut.write(door(guest="Lea"))["guest"] == "Lea"
    assert "guest" not in DoorOut.write(door(guest=""))


def test_writes_one_row_after_the_other() -> None:
    assert [DoorOut.write(door(number=number))["room"] for number in (1, None)] == [1, None]


@pytest.mark.parametrize("value", [AT, "2026-06-01T18:30:00.123456+00:00", "2026-06-01 18:30:00.123456+00"])
def test_writes_a_time_of_a_row_and_of_postgresqls_json_alike(value: Any) -> None:
    assert Time().to_representation(value) == "2026-06-01T18:30:00.123Z"


def test_only_a_constant_has_a_closed_list_of_values_in_the_schema() -> None:
    assert "enum" not in OpenChoice(("a", "b")).schema()
    assert Constant("a").schema()["enum"] == ["a"]
