"""What an act costs, in CPU seconds of this thread, and how that grows: ratios in one run, never times."""

import contextlib
import gc
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence

from tests.config.bounds.shapes import Shape

MINIMUM = 0.003  # CPU seconds that half of it takes, where it seems to cost too much
ROUNDS = 30  # of a measurement, at most: what others do here only makes an act dearer
MAX_GROWTH = 2.5  # of the price, for twice as much


def cpu(act: Callable[[], object]) -> float:
    """Return the CPU seconds that doing it once has cost."""
    started = time.thread_time()
    act()
    return time.thread_time() - started


def lowest(measure: Callable[[], float], *, enough: float) -> float:
    """Return the least of some measurements: of one, where it is low enough."""
    minimum = measure()
    for _ in range(ROUNDS):
        if minimum <= enough:
            break
        minimum = min(minimum, measure())
    return minimum


def growth(act: Callable[[str], object], shape: Shape, size: int) -> float:
    """Return how many times as much as its half a text of that size costs.

    Each text is another one, so that nothing has been remembered of an earlier one. What seems to cost too much is
    done again, and what takes no time more often: a clock has its own price, and what slows a machine, or what the
    first to need so much memory pays for it, only makes an act dearer. So the least of each size counts.
    """
    pieces = shape.pieces(size) // 2
    counts = itertools.cycle(range(pieces, pieces // 2, -1))
    act(shape.times(next(counts)))  # what is done once and for all
    half = whole = math.inf
    times = 1
    with _uncollected():
        for _ in range(ROUNDS):
            some = list(itertools.islice(counts, times))
            half = min(half, _sum(act, [shape.times(count) for count in some]))
            whole = min(whole, _sum(act, [shape.times(2 * count) for count in some]))
            if half > 0 and whole <= MAX_GROWTH * half:  # a virtual machine's clock stands still now and then
                break
            if half < MINIMUM:
                half, whole, times = math.inf, math.inf, 2 * times
    return whole / half


def _sum(act: Callable[[str], object], texts: Sequence[str]) -> float:
    return cpu(lambda: [act(text) for text in texts])


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """The collector's turn comes whoever acts, and it walks what others have left too."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def as_in_a_web_process() -> Iterator[None]:
    """The collector leaves alone what was there before, as config.wsgi has it: all that the tests have loaded."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
