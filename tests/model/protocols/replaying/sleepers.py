"""Threads that run the real code. The threads sleep at the code's fail points, as processes sleep in models."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from django.db import connection

from config.lib import deadline, failpoint

SECONDS = 10.0  # the longest time from one fail point to the next


class ProcessDied(BaseException):
    """Simulates the death of a process at a fail point."""


class Sleeper:
    """A process that sleeps at each of its fail points until the test lets it continue.

    `at` is the fail point at which it sleeps, "start" before its first step, or "" after its end. `error` is
    the exception that ended it.
    """

    by_thread: dict[int, "Sleeper"] = {}

    def __init__(self, work: Callable[[], object], points: tuple[str, ...]) -> None:
        self.at, self.error, self.is_dying = "start", None, False
        self._work, self._points = work, points
        self._turn, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)

    error: BaseException | None

    def go_on(self) -> str:
        """Let the process run to its next fail point. Return this point, or "" if the process has ended."""
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._turn.release()
        assert self._stopped.acquire(timeout=SECONDS), (
            f"no fail point within {SECONDS} seconds after {self.at}"
        )
        return self.at

    def go_on_to(self, point: str) -> None:
        """Let the process run until it sleeps at this point or, if the point is "", until it ends.

        Fail if it does not get there.
        """
        while self.at != point:
            assert self.go_on() or not point, f"the process ended before {point}: {self.error!r}"

    def die(self) -> None:
        """End the process at the point where it sleeps."""
        self.is_dying = True
        if self.at == "start":
            self.at = ""
        self.go_on_to("")

    def sleep_at(self, point: str) -> None:
        """Sleep at a fail point. This method is called in the process's own thread."""
        if point not in self._points or self.is_dying:
            return
        self.at = point
        self._stopped.release()
        self._turn.acquire()
        if self.is_dying:
            raise ProcessDied

    def _run(self) -> None:
        self.by_thread[threading.get_ident()] = self
        try:
            self._work()
        except BaseException as error:
            self.error = error
        finally:
            connection.close()
            self.by_thread.pop(threading.get_ident())
            self.at = ""
            self._stopped.release()


class Clock:
    """The monotonic clock with which deadlines are measured. It advances only when a test changes it."""

    def __init__(self) -> None:
        self.seconds = time.monotonic()

    def monotonic(self) -> float:
        return self.seconds


@contextmanager
def asleep_at_fail_points() -> Iterator[Clock]:
    """In the block, let Sleepers sleep at the fail points that they name. Yield the clock of the deadlines."""

    def reach(point: str, *_: object) -> None:
        if sleeper := Sleeper.by_thread.get(threading.get_ident()):
            sleeper.sleep_at(point)

    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoint, "reach", reach)
        patch.setattr(deadline, "time", SimpleNamespace(monotonic=clock.monotonic))
        yield clock
