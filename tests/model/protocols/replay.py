"""Replays runs of a protocol's model with the real code and the real database, and compares both after each step."""

import copy
from collections import Counter
from collections.abc import Hashable
from random import Random
from typing import Any, Generic, TypeVar

from django.db import transaction

from tests.model.protocols.moves import Move, Moving

S = TypeVar("S", bound=Hashable)


class World(Generic[S]):
    """The real code next to a model. Attributes are replaced and never changed, because forks share them.

    The steps in `outside` are not steps of the service, and change no row.
    """

    outside: frozenset[str] = frozenset()

    def take(self, move: Move[S], before: S) -> None:
        """Take the step of the model with the real code."""
        raise NotImplementedError

    def seen(self, expected: S) -> Any:
        """Return what the database shows, in the form of `shown`."""
        raise NotImplementedError

    def shown(self, state: S) -> Any:
        """Return what the database must show in a state of the model."""
        raise NotImplementedError


def replay_all(model: Moving[S], world: World[S], *, most: int) -> set[str]:
    """Take every step from each of the first `most` states of a breadth-first search.

    Each state is reached by its shortest run. Return the names of the steps that were taken.
    """
    found, first_moves = {model.start()}, dict[S, list[Move[S]]]()
    queue = [model.start()]
    for state in queue:
        first_moves[state] = [move for move in model.moves(state) if _is_new(move.after, found, most)]
        queue += [move.after for move in first_moves[state]]
    replay = _Replay(model, first_moves)
    replay.take_all(world, model.start(), ())
    return replay.taken


def _is_new(state: S, found: set[S], most: int) -> bool:
    if state in found or len(found) >= most:
        return False
    found.add(state)
    return True


class _Replay(Generic[S]):
    """Takes the steps of a model. `first_moves` has the steps by which the search has found new states."""

    def __init__(self, model: Moving[S], first_moves: dict[S, list[Move[S]]]) -> None:
        self.model, self.first_moves, self.taken = model, first_moves, set[str]()

    def take_all(self, world: World[S], state: S, story: tuple[str, ...]) -> None:
        """Take every step that is possible in a state, and continue from each state that was found so."""
        for move in self.model.moves(state):
            savepoint, fork = transaction.savepoint(), copy.copy(world)
            _take(fork, move, state, story)
            self.taken.add(move.act[0])
            if move in self.first_moves[state]:
                self.take_all(fork, move.after, (*story, move.said))
            transaction.savepoint_rollback(savepoint)


def replay_walks(model: Moving[S], world: World[S], *, walks: int, longest: int = 60) -> set[str]:
    """Take `walks` random runs of at most `longest` steps, each from the same start.

    A step that was taken often is less likely. Return the names of the steps that were taken.
    """
    taken = Counter[str]()
    for seed in range(walks):
        random, state, story, fork = Random(seed), model.start(), tuple[str, ...](), copy.copy(world)
        savepoint = transaction.savepoint()
        while (moves := list(model.moves(state))) and len(story) < longest:
            (move,) = random.choices(moves, [1 / (1 + taken[move.act[0]]) for move in moves])
            _take(fork, move, state, story)
            taken[move.act[0]] += 1
            state, story = move.after, (*story, move.said)
        transaction.savepoint_rollback(savepoint)
    return set(taken)


def _take(world: World[S], move: Move[S], before: S, story: tuple[str, ...]) -> None:
    if move.act[0] in world.outside:
        return
    world.take(move, before)
    seen, shown = world.seen(move.after), world.shown(move.after)
    assert seen == shown, "\n".join([*story, move.said, f"The database shows {seen}, and the model {shown}."])
