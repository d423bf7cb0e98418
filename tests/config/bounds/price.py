"""Measures the CPU time of a call on this thread, and the growth of this time with the length of the input.

Tests compare times only with other times of the same run, because absolute times depend on the machine.
"""

import contextlib
import gc
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence

from tests.config.bounds.shapes import Shape

# If the half-size texts take fewer CPU seconds than this, the ratio is too inexact to fail a test.
MINIMUM = 0.003
# Maximum number of repetitions. Measurements are repeated because other load on the machine slows calls down.
ROUNDS = 30
# The largest allowed factor by which the CPU time grows if the text is twice as long.
MAX_GROWTH = 2.5


def cpu(act: Callable[[], object]) -> float:
    """Return the CPU seconds that one call takes."""
    started = time.thread_time()
    act()
    return time.thread_time() - started


def lowest(measure: Callable[[], float], *, enough: float) -> float:
    """Return the lowest of several measurements. Stop after the first one that is at most `enough`."""
    minimum = measure()
    for _ in range(ROUNDS):
        if minimum <= enough:
            break
        minimum = min(minimum, measure())
    return minimum


def growth(act: Callable[[str], object], shape: Shape, size: int) -> float:
    """Return the CPU time for a text of this size, divided by the CPU time for a text of half the size.

    Each call gets a different text, so that it cannot use the results of an earlier call. If the ratio is over
    MAX_GROWTH, the measurement is repeated. If the half-size texts took less than MINIMUM, the next measurement uses
    twice as many texts. The function compares the lowest times, because other load and memory allocations can only make
    a call slower.
    """
    pieces = shape.pieces(size) // 2
    counts = itertools.cycle(range(pieces, pieces // 2, -1))
    # Do not measure the first call, because it does extra work, such as filling caches.
    act(shape.times(next(counts)))
    half = whole = math.inf
    times = 1
    with _uncollected():
        for _ in range(ROUNDS):
            some = list(itertools.islice(counts, times))
            half = min(half, _sum(act, [shape.times(count) for count in some]))
            whole = min(whole, _sum(act, [shape.times(2 * count) for count in some]))
            # The clock of a virtual machine sometimes stops, and then `half` is 0.
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

    Otherwise a collection could start during any call, and objects that other tests left would make the call slower.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def as_in_a_web_process() -> Iterator[None]:
    """Exempt all existing objects from garbage collection until the block ends, as config.wsgi does.

    Otherwise each collection would visit every object that the tests have loaded.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
