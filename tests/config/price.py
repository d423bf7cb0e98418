"""What an act costs, in CPU seconds of this process, and how that grows: ratios in one run, never times."""

import contextlib
import gc
import math
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

Fed = TypeVar("Fed")
LEAST = 0.005  # CPU seconds that a measurement takes: less is lost in the clock's steps
ROUNDS = 3
MOST_GROWTH = 2.5  # of the price, for twice as much


def cpu(act: Callable[[], object], *, times: int = 1) -> float:
    """Return the least CPU seconds that doing it so many times has cost."""

    def measured() -> float:
        started = time.process_time()
        for _ in range(times):
            act()
        return time.process_time() - started

    return min(measured() for _ in range(ROUNDS))


def often_enough(act: Callable[[], object]) -> int:
    """Return how often to do it for a measurement."""
    once = cpu(act)
    return max(1, round(LEAST / max(once, 1e-7)))


def is_within(act: Callable[[], object], most: float) -> bool:
    """Return whether doing it once costs at most so many CPU seconds; done again where it did not at first."""
    started = time.process_time()
    act()
    return time.process_time() - started <= most or cpu(act) <= most


def growth(act: Callable[[Fed], object], shape: Callable[[int], Fed], n: int) -> float:
    """Return how much more a shape of twice the size costs, at best: what others do here only makes it dearer."""
    one, two = shape(n), shape(2 * n)
    with as_in_a_web_process():
        times = often_enough(lambda: act(one))
        ratio = math.inf
        for _ in range(ROUNDS):
            ratio = min(ratio, cpu(lambda: act(two), times=times) / cpu(lambda: act(one), times=times))
            if ratio <= MOST_GROWTH:
                break
        return ratio


@contextlib.contextmanager
def as_in_a_web_process() -> Iterator[None]:
    """The collector leaves alone what was there before, as config.wsgi has it: all that the tests have loaded."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
