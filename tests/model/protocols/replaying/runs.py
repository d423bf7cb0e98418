"""Finds the runs of a model that a test repeats with the real code."""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

from tests.model.search import Model

S = TypeVar("S", bound=Hashable)


class Step(NamedTuple):
    """A step of a run: its sentence, and the states before and after it.

    If an action is refused, the two states are equal.
    """

    said: str
    before: Any
    after: Any


Run = tuple[Step, ...]


def shortest_runs(model: Model[S], describe: Callable[[Step], Hashable]) -> list[Run]:
    """Return the shortest run to each kind of step. Leave out a run if another run begins with it.

    `describe` returns the kind of a step. Two steps should be of one kind if the code treats them in the same
    way. If a step does not change the state, it is added to the first run in which it is possible, once for
    each kind.
    """
    runs: dict[S, Run] = {model.start(): ()}
    found: dict[Hashable, Run] = {}
    queue = deque(runs)
    while queue:
        state = queue.popleft()
        for said, after in model.steps(state):
            step = Step(said, state, after)
            if after not in runs:
                runs[after] = (*runs[state], step)
                queue.append(after)
            if after != state:
                found.setdefault(describe(step), (*runs[state], step))
    refused = set[Hashable]()
    return [_add_refused(model, describe, run, refused) for run in _drop_beginnings(list(found.values()))]


def _drop_beginnings(runs: list[Run]) -> list[Run]:
    beginnings = {run[:length] for run in runs for length in range(len(run))}
    return [run for run in runs if run not in beginnings]


def _add_refused(
    model: Model[Any], describe: Callable[[Step], Hashable], run: Run, seen: set[Hashable]
) -> Run:
    """Add the steps that do not change the state, except those whose kind is in `seen`.

    Add the kinds of these steps to `seen`.
    """
    steps = list[Step]()
    for taken in run:
        for said, after in model.steps(taken.before):
            step = Step(said, taken.before, after)
            if after == taken.before and describe(step) not in seen:
                seen.add(describe(step))
                steps.append(step)
        steps.append(taken)
    return tuple(steps)
