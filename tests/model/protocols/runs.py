"""Runs of a model that a test repeats with the real code."""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

from tests.model.search import Model

S = TypeVar("S", bound=Hashable)


class Step(NamedTuple):
    """A step of a run: its sentence, and the states before and after it."""

    said: str
    before: Any
    after: Any


Run = tuple[Step, ...]


def shortest_runs(model: Model[S], describe: Callable[[Step], Hashable]) -> list[Run]:
    """Return the shortest run to each kind of step, without runs that another run begins with.

    `describe` returns the kind of a step. Two steps of one kind should be the same for the code.
    """
    runs: dict[S, Run] = {model.start(): ()}
    found: dict[Hashable, Run] = {}
    queue = deque(runs)
    while queue:
        state = queue.popleft()
        for said, after in model.steps(state):
            step = Step(said, state, after)
            if after == state:
                continue
            if after not in runs:
                runs[after] = (*runs[state], step)
                queue.append(after)
            found.setdefault(describe(step), (*runs[state], step))
    return _drop_beginnings(list(found.values()))


def _drop_beginnings(runs: list[Run]) -> list[Run]:
    beginnings = {run[:length] for run in runs for length in range(len(run))}
    return [run for run in runs if run not in beginnings]
