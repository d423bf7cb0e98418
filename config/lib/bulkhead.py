"""Bulkheads. They limit how many threads of a process wait for the same third party at the same time.

Rule limit.slots.
"""

import threading
from collections import Counter as Counts
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from prometheus_client import Counter, Gauge

from config.lib import connection_release
from config.lib.deadline import Deadline
from config.lib.process import sampling

WAIT_SECONDS = 2.0  # the longest wait for a free slot
Begun = TypeVar("Begun")

SLOTS = Gauge("checkout_slots", "Slots there are", ["bulkhead"], multiprocess_mode="livesum")
TAKEN = Gauge("checkout_slots_taken", "Slots that are taken", ["bulkhead"], multiprocess_mode="livesum")
REFUSED = Counter("checkout_slots_refused", "Callers who found no slot in time", ["bulkhead"])


class Busy(Exception):
    """Raised if too many threads wait for the same third party. The work has not been started."""


class Bulkhead:
    """A limited number of slots. A thread takes a slot while it waits for a third party.

    If no slot is free, up to `queue` threads can wait for one. If the bulkhead has a name, its metrics are
    exported under that name (rule environment.metrics).
    """

    def __init__(self, slots: int, *, queue: int = 0, name: str = "") -> None:
        self.slots = self._free = slots
        self._queue = queue
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        if name:
            sampling.every_second(self.sample)

    @contextmanager
    def slot(self) -> Iterator["Slot"]:
        """Yield a slot that the caller can take, and release it at the end of the block."""
        slot = Slot(self)
        try:
            yield slot
        finally:
            slot.give_back()

    def enter(self) -> bool:
        """Take a slot if one is free, without waiting; return whether one was free."""
        with self._lock:
            if not self._free:
                return False
            self._free -= 1
            return True

    def wait(self, patience: float) -> bool:
        """Take a slot, and wait for it up to `patience` seconds; return whether the caller got one.

        Threads get slots in order of arrival.
        """
        turn = threading.Event()
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            if len(self._waiting) >= self._queue:
                return False
            self._waiting.append(turn)
        connection_release.release()
        if turn.wait(patience):
            return True
        with self._lock:
            if turn.is_set():
                return True  # another thread handed the slot over after the wait had timed out
            self._waiting.remove(turn)
            return False

    def refuse(self) -> None:
        """Raise Busy, and count the refusal in the metric."""
        REFUSED.labels(self._name).inc()
        raise Busy

    def leave(self) -> None:
        """Release a slot. If threads wait, the thread that has waited longest gets it."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1

    def sample(self) -> None:
        """Set the two metrics: the number of slots, and how many of them are taken."""
        SLOTS.labels(self._name).set(self.slots)
        TAKEN.labels(self._name).set(self.slots - self._free)


class Slot:
    """A caller's use of a bulkhead. The caller takes the slot only when it needs it."""

    def __init__(self, bulkhead: Bulkhead) -> None:
        self._bulkhead = bulkhead
        self._is_ours = False

    def is_taken(self) -> bool:
        """Take the slot if one is free, without waiting; return whether the caller has it."""
        self._is_ours = self._is_ours or self._bulkhead.enter()
        return self._is_ours

    def take(self) -> None:
        """Take the slot without waiting. Raises Busy if none is free."""
        if not self.is_taken():
            raise Busy

    def wait(self, deadline: Deadline | None = None) -> None:
        """Take the slot, and wait for it up to two seconds, but not past the deadline. Raises Busy."""
        patience = (deadline or Deadline.after(WAIT_SECONDS)).remaining(WAIT_SECONDS)
        self._is_ours = self._is_ours or self._bulkhead.wait(patience)
        if not self._is_ours:
            self._bulkhead.refuse()

    def begin(self, begin: Callable[["Slot"], Begun], deadline: Deadline | None = None) -> Begun:
        """Call `begin` and return its result. `begin` must take the slot inside its own transaction.

        If no slot is free, that transaction is rolled back, so that the caller holds no lock while it waits.
        When the caller has a slot, `begin` is called again. Raises Busy if the wait times out.
        """
        try:
            return begin(self)
        except Busy:
            self.wait(deadline)
            return begin(self)

    def give_back(self) -> None:
        """Release the slot if it was taken."""
        if self._is_ours:
            self._is_ours = False
            self._bulkhead.leave()


class KeyedLimit:
    """A limit on concurrent threads: at most `places` in total, and at most `each` for the same key.

    The calls for one key can therefore not take all places. No thread waits for a place.
    """

    def __init__(self, places: int, *, each: int = 1) -> None:
        self.places, self._each = places, each
        self._lock = threading.Lock()
        self._taken: Counts[Hashable] = Counts()

    @contextmanager
    def place(self, key: Hashable) -> Iterator[bool]:
        """If a place for the key is free, take it for the duration of the block. Yield whether it was free."""
        with self._lock:
            is_ours = self._taken[key] < self._each and self._taken.total() < self.places
            if is_ours:
                self._taken[key] += 1
        try:
            yield is_ours
        finally:
            if is_ours:
                with self._lock:
                    self._taken -= Counts([key])  # also removes a key whose count is now zero
