"""Replays runs of a protocol's model with the real code. After each step, compares the database with the model."""

import copy
from collections import defaultdict
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from django.db import transaction

from config.lib.database import queries
from tests.model.protocols.replaying.moves import Move, Moving

S = TypeVar("S", bound=Hashable)


class World(Generic[S]):
    """The real code, which takes the steps of a model.

    Attributes are replaced and never modified, because copies of the world share them. The steps in `outside`
    are not steps of the service, and do not change a row.
    """

    outside: frozenset[str] = frozenset()

    def kind(self, move: Move[S], before: S) -> Hashable:
        """Return the kind of a step. Of all steps of one kind, only one is replayed."""
        raise NotImplementedError

    def take(self, move: Move[S], before: S) -> None:
        """Take a step of the model with the real code."""
        raise NotImplementedError

    def seen(self, expected: S) -> Any:
        """Return what the database shows, in the same form as `shown`."""
        raise NotImplementedError

    def shown(self, state: S) -> Any:
        """Return what the database must show if the model is in this state."""
        raise NotImplementedError


def replay(model: Moving[S], world: World[S]) -> set[str]:
    """For each kind of step, replay the shortest run to it. Return the names of the service's steps.

    Runs with the same beginning share its steps, because a savepoint returns to the state after these steps.
    """
    # On a busy machine, the search can take longer than a transaction is allowed to be idle.
    queries.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    replayed = _Replay(model, world)
    replayed.take_from(world, model.start(), ())
    return replayed.taken


class _Replay(Generic[S]):
    """The steps to take from each state, and the names of the steps that have been taken."""

    def __init__(self, model: Moving[S], world: World[S]) -> None:
        self.taken = set[str]()
        self.steps: dict[S, dict[Move[S], None]] = defaultdict(dict)
        # For each state, the first step found that leads to it. These steps form the shortest run to the
        # state.
        self.came_from: dict[S, tuple[S, Move[S]] | None] = {model.start(): None}
        kinds = set[Hashable]()
        queue = [model.start()]
        for state in queue:
            for move in model.moves(state):
                if move.after not in self.came_from:
                    self.came_from[move.after] = (state, move)
                    queue.append(move.after)
                kind = (move.act[0], world.kind(move, state))
                if move.act[0] not in world.outside and kind not in kinds:
                    kinds.add(kind)
                    self._plan(state, move)

    def _plan(self, state: S, move: Move[S]) -> None:
        """Plan a step, and the shortest run to the state before it."""
        self.steps[state][move] = None
        while (before := self.came_from[state]) is not None:
            state, move = before
            self.steps[state][move] = None

    def take_from(self, world: World[S], state: S, story: tuple[str, ...]) -> None:
        """Take the planned steps from a state.

        If the shortest run to the next state contains the step, continue from the next state.
        """
        for move in self.steps[state]:
            savepoint, fork = transaction.savepoint(), copy.copy(world)
            said = (*story, move.said)
            if move.act[0] not in world.outside:
                fork.take(move, state)
                seen, shown = fork.seen(move.after), fork.shown(move.after)
                assert seen == shown, "\n".join([*said, f"The database shows {seen}, and the model {shown}."])
                self.taken.add(move.act[0])
            if self.came_from[move.after] == (state, move):
                self.take_from(fork, move.after, said)
            transaction.savepoint_rollback(savepoint)
