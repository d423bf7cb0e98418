"""A cached value is at most a few seconds old. A caller does not wait while a different caller refreshes the value."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from config.lib.process import cached_reads
from config.lib.process.cached_reads import GRACE, CachedRead

SECONDS = 3.0


class Source:
    """The source of a cached number. A test can change the number, and can delay reads."""

    def __init__(self) -> None:
        self.number = self.readings = 0
        self.is_reading, self.may_go_on = threading.Event(), threading.Event()
        self.may_go_on.set()

    def read(self) -> int:
        self.readings += 1
        found = self.number
        self.is_reading.set()
        assert self.may_go_on.wait(5)
        return found

    def hold_up(self) -> None:
        self.is_reading.clear()
        self.may_go_on.clear()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(cached_reads, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def number(source: Source, clock: list[float]) -> CachedRead[int]:
    return CachedRead(source.read, seconds=SECONDS)


def test_a_value_is_cached_for_its_lifetime_and_can_be_refreshed(
    number: CachedRead[int], source: Source, clock: list[float]
) -> None:
    assert number() == 0
    source.number = 1
    clock[0] += SECONDS - 0.1
    assert number() == 0
    clock[0] += 0.1
    assert number() == 1
    source.number = 2
    number.invalidate()
    assert (number(), source.readings) == (2, 3)


def test_one_thread_refreshes_while_others_use_the_cached_value(
    number: CachedRead[int], source: Source, clock: list[float]
) -> None:
    number()
    source.number, clock[0] = 1, clock[0] + SECONDS
    source.hold_up()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(number)
        assert source.is_reading.wait(5)
        assert number() == 0
        source.may_go_on.set()
        assert first.result() == 1
    assert (number(), source.readings) == (1, 2)


@pytest.mark.rule("operator.stop")
def test_a_value_that_is_too_old_is_not_used_by_any_thread(
    number: CachedRead[int], source: Source, clock: list[float]
) -> None:
    """If two callers ask at the same time after a long pause, both get the new value."""
    number()
    source.number, clock[0] = 1, clock[0] + SECONDS + GRACE
    source.hold_up()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(number)
        assert source.is_reading.wait(5)
        source.is_reading.clear()
        second = pool.submit(number)
        assert source.is_reading.wait(5), "it waits for the first"
        source.may_go_on.set()
        assert (first.result(), second.result()) == (1, 1)


def test_a_read_that_started_before_a_refresh_is_not_cached(
    number: CachedRead[int], source: Source, clock: list[float]
) -> None:
    source.hold_up()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(number)
        assert source.is_reading.wait(5)
        source.number, clock[0] = 1, clock[0] + 0.1
        number.invalidate()
        source.may_go_on.set()
        assert first.result() == 0
    assert number() == 1
