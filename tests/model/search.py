"""A breadth-first search through the states of a model.

It finds a counterexample with the smallest possible number of steps.
"""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Generic, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)


class Model(Protocol[S]):
    """A model: its first state, the steps that are possible in each state, and its invariants."""

    def start(self) -> S: ...

    def steps(self, state: S, /) -> Iterable[tuple[str, S]]:
        """For each possible step, yield a sentence and the state after the step."""

    def problem(self, state: S, is_last: bool, /) -> str:
        """Return the invariant that the state breaks, or "". `is_last` is true if no step is possible."""


@dataclass(frozen=True)
class Result(Generic[S]):
    """The result of a search: the number of visited states, the first problem, and the steps to this problem."""

    states: int
    problem: str = ""
    story: tuple[tuple[str, S], ...] = ()


def explore(model: Model[S]) -> Result[S]:
    """Visit every state that the model can reach, and stop at the first problem."""
    came_from: dict[S, tuple[S, str] | None] = {model.start(): None}
    queue = deque(came_from)
    while queue:
        state = queue.popleft()
        following = _moves(model, state)
        for said, after in following:
            if after not in came_from:
                came_from[after] = (state, said)
                queue.append(after)
        if problem := model.problem(state, not following):
            return Result(len(came_from), problem, _story(came_from, state))
    return Result(len(came_from))


def wander(model: Model[S], random: Random) -> Result[S]:
    """Take random steps until no step is left or a problem is found.

    This function is for scopes that are too large to be explored.
    """
    state, story = model.start(), list[tuple[str, S]]()
    while True:
        following = _moves(model, state)
        problem = model.problem(state, not following)
        if problem or not following:
            return Result(len(story) + 1, problem, tuple(story))
        story.append(random.choice(following))
        state = story[-1][1]


def has_cycle(model: Model[S]) -> bool:
    """Return whether a sequence of steps can lead back to an earlier state, and thus repeat forever."""
    start = model.start()
    finished: set[S] = set()
    path = {start: iter(_moves(model, start))}
    while path:
        state = next(reversed(path))
        after = next((after for _, after in path[state] if after not in finished), None)
        if after is None:
            finished.add(state)
            del path[state]
        elif after in path:
            return True
        else:
            path[after] = iter(_moves(model, after))
    return False


def _moves(model: Model[S], state: S) -> list[tuple[str, S]]:
    """Return the steps that change the state. Other steps, such as a repeated notification, are left out."""
    return [(said, after) for said, after in model.steps(state) if after != state]


def _story(came_from: dict[S, tuple[S, str] | None], state: S) -> tuple[tuple[str, S], ...]:
    steps = []
    while (before := came_from[state]) is not None:
        steps.append((before[1], state))
        state = before[0]
    return tuple(reversed(steps))
