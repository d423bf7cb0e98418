"""If a thread is stuck for a minute, the probe names the thread. After two minutes, the process ends."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from config import health
from config.lib.process import liveness

pytestmark = pytest.mark.rule("environment.liveness")


class Clock:
    """A monotonic clock that a test sets. It also records whether the process was ended."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.ended: int | None = None

    def monotonic(self) -> float:
        return self.now

    def pass_by(self, seconds: int) -> None:
        """Advance the clock by this many seconds. The process checks itself after each second."""
        for _ in range(seconds):
            self.now += 1
            liveness.exit_if_stuck()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    one = Clock()
    monkeypatch.setattr(time, "monotonic", one.monotonic)
    monkeypatch.setattr(os, "_exit", lambda code: setattr(one, "ended", code))
    monkeypatch.setattr(liveness, "_signs", {})
    liveness.exit_if_stuck()
    yield one


def test_a_stuck_thread_is_named_by_the_probe_after_a_minute(clock: Clock) -> None:
    liveness.watch("ticker 0")
    clock.pass_by(59)
    assert health.answer_probe("/livez", "") == (200, b"alive\n")
    clock.pass_by(2)
    assert health.answer_probe("/livez", "") == (503, b"ticker 0 stands still\n")
    liveness.record_sign("ticker 0")
    assert health.answer_probe("/livez", "")[0] == 200


def test_a_stuck_thread_ends_its_process_after_two_minutes(clock: Clock) -> None:
    liveness.watch("ticker 0")
    clock.pass_by(119)
    assert clock.ended is None
    clock.pass_by(3)
    assert clock.ended


def test_a_thread_is_not_stuck_if_the_whole_process_was_suspended(clock: Clock) -> None:
    liveness.watch("ticker 0")
    clock.now += 3600
    clock.pass_by(5)
    assert clock.ended is None and liveness.stuck_threads() == []


def test_a_thread_that_ends_is_not_watched_any_more(clock: Clock) -> None:
    liveness.watch("ticker 0")
    liveness.unwatch("ticker 0")
    clock.pass_by(300)
    assert clock.ended is None


def test_a_thread_that_is_not_watched_is_ignored(clock: Clock) -> None:
    threading.Thread(target=liveness.record_sign, name="another").start()
    assert liveness.sign_ages() == {}


def test_systemd_gets_a_sign_of_life_only_while_no_thread_is_stuck(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(0.2)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        liveness.ping_watchdog()
        with pytest.raises(TimeoutError):
            systemd.recv(100)  # the unit has no WatchdogSec
        monkeypatch.setenv("WATCHDOG_USEC", "60000000")
        liveness.watch("ticker 0")
        liveness.ping_watchdog()
        assert systemd.recv(100) == b"WATCHDOG=1"
        clock.pass_by(61)
        liveness.ping_watchdog()
        with pytest.raises(TimeoutError):
            systemd.recv(100)
