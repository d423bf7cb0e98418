"""`make quick` runs the faster half of the tests."""

from types import SimpleNamespace
from typing import Any

from tests import durations


def item(nodeid: str, *, fixtures: tuple[str, ...] = (), marked: bool = False) -> Any:
    return SimpleNamespace(
        nodeid=nodeid, fixturenames=fixtures, get_closest_marker=lambda name: marked or None
    )


def test_the_faster_half_contains_the_tests_with_the_shortest_times() -> None:
    items = [item("slow"), item("fast"), item("new"), item("medium")]
    seconds = {"slow": 3.0, "medium": 2.0, "fast": 1.0, "deleted": 0.1}
    assert [kept.nodeid for kept in durations.faster_half(items, seconds)] == ["fast", "medium"]


def test_without_a_record_the_faster_half_contains_tests_without_a_database() -> None:
    items = [item("plain"), item("marked", marked=True), item("by fixture", fixtures=("db",))]
    assert [kept.nodeid for kept in durations.faster_half(items, {})] == ["plain"]
