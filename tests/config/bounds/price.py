"""The CPU time that a call takes on this thread, and its growth.

Tests compare ratios within one run, and never absolute times.
"""

import contextlib
import gc
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence

from tests.config.bounds.shapes import Shape

MINIMUM = 0.003  # CPU seconds that the half-size texts must take before a high ratio counts
ROUNDS = 30  # maximum repetitions of a measurement, because other load on the machine makes calls slower
MAX_GROWTH = 2.5  # largest growth of the CPU time for a text of double length


def cpu(act: Callable[[], object]) -> float:
    """Return the CPU seconds that one call takes."""
    started = time.thread_time()
    act()
    return time.thread_time() - started


def lowest(measure: Callable[[], float], *, enough: float) -> float:
    """Return the lowest of several measurements. Stop at the first one that is at most `enough`."""
    minimum = measure()
    for _ in range(ROUNDS):
        if minimum <= enough:
            break
        minimum = min(minimum, measure())
    return minimum


def growth(act: Callable[[str], object], shape: Shape, size: int) -> float:
    """Return the ratio of the CPU time for a text of this size to that for a text of half the size.

    Each call gets a different text, so that it cannot use results of an earlier call. If the ratio is too
    high, the measurement is repeated. If the time is too short for the clock, each measurement then uses
    twice as many texts. Other load and large memory allocations can only make a call slower, so the ratio is
    that of the lowest times.
    """
    pieces = shape.pieces(size) // 2
    counts = itertools.cycle(range(pieces, pieces // 2, -1))
    act(shape.times(next(counts)))  # work that only the first call does
    half = whole = math.inf
    times = 1
    with _uncollected():
        for _ in range(ROUNDS):
            some = list(itertools.islice(counts, times))
            half = min(half, _sum(act, [shape.times(count) for count in some]))
            whole = min(whole, _sum(act, [shape.times(2 * count) for count in some]))
            # `half` is 0 if the clock of a virtual machine stops, which happens sometimes.
            if half > 0 and whole <= MAX_GROWTH * half:
                break
            if half < MINIMUM:
                half, whole, times = math.inf, math.inf, 2 * times
    return whole / half


def _sum(act: Callable[[str], object], texts: Sequence[str]) -> float:
    return cpu(lambda: [act(text) for text in texts])


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Disable the garbage collector until the block ends.

    A collection can start during any call, and takes longer because of the objects of other tests.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def as_in_a_web_process() -> Iterator[None]:
    """Exempt all existing objects from garbage collection until the block ends, as config.wsgi does.

    Otherwise each collection would visit everything that the tests have loaded.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
