"""Bulkheads: limits on how many threads of a process wait for one outside party, and how many queue for it.

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

WAIT_SECONDS = 2.0  # for a free slot
Begun = TypeVar("Begun")

SLOTS = Gauge("checkout_slots", "Slots there are", ["bulkhead"], multiprocess_mode="livesum")
TAKEN = Gauge("checkout_slots_taken", "Slots that are taken", ["bulkhead"], multiprocess_mode="livesum")
REFUSED = Counter("checkout_slots_refused", "Callers who found no slot in time", ["bulkhead"])


class Busy(Exception):
    """Too many threads wait for the same outside party. The work has not begun."""


class Bulkhead:
    """`slots` that threads take while they wait for an outside party. `queue` more threads may wait for one.

    A bulkhead with a name is measured under that name (rule environment.metrics).
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
        """Yield a slot that is not taken yet, and release it at the end of the block."""
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
        """Take a slot, or wait for one up to `patience` seconds; return whether the caller has it.

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
        connection_release.begin()
        if turn.wait(patience):
            return True
        with self._lock:
            if turn.is_set():
                return True  # it was handed over just now
            self._waiting.remove(turn)
            return False

    def refuse(self) -> None:
        """Count a caller who found no slot. Raises Busy."""
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
        """Set the metrics of all slots and of taken slots."""
        SLOTS.labels(self._name).set(self.slots)
        TAKEN.labels(self._name).set(self.slots - self._free)


class Slot:
    """A caller's slot of a bulkhead."""

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
        """Take the slot, or wait for one up to two seconds, and not past the deadline. Raises Busy."""
        patience = (deadline or Deadline.after(WAIT_SECONDS)).left(WAIT_SECONDS)
        self._is_ours = self._is_ours or self._bulkhead.wait(patience)
        if not self._is_ours:
            self._bulkhead.refuse()

    def begin(self, begin: Callable[["Slot"], Begun], deadline: Deadline | None = None) -> Begun:
        """Return the result of `begin`, which takes the slot in its transaction once it needs one.

        If no slot is free, that transaction is rolled back, so that no caller holds a lock while waiting for
        a slot. With a slot, `begin` runs again. Raises Busy.
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


class OneEach:
    """Places for a number of threads, of which each key has at most `each`.

    One key's calls can therefore not take all places. No thread waits for a place.
    """

    def __init__(self, places: int, *, each: int = 1) -> None:
        self.places, self._each = places, each
        self._lock = threading.Lock()
        self._taken: Counts[Hashable] = Counts()

    @contextmanager
    def place(self, key: Hashable) -> Iterator[bool]:
        """Take a place for the duration of the block if one is free; yield whether one was free."""
        with self._lock:
            is_ours = self._taken[key] < self._each and self._taken.total() < self.places
            if is_ours:
                self._taken[key] += 1
        try:
            yield is_ours
        finally:
            if is_ours:
                with self._lock:
                    self._taken -= Counts([key])  # drops a key that has no more places
