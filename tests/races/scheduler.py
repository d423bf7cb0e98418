"""A scheduler that interleaves the SQL statements of several actors, in an order that depends on a seed.

Each actor is a thread with its own connection. It stops before each of its statements. The scheduler then
lets the stopped actor with the highest priority run to its next statement. The priorities are random. At a
few random steps, the actor that has its turn gets the lowest priority (probabilistic concurrency testing,
Burckhardt et al., 2010). If an actor sleeps or waits for a PostgreSQL lock, the scheduler skips it until it
stops again.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from typing import Any, TypeVar

from django.db import connection

T = TypeVar("T")
RUNS, STOPPED, ENDED = "runs", "stopped", "ended"
CHANGES = 3  # number of priority changes in a run
STEPS = 90  # the priorities change within the first 90 steps; three actors take about as many steps
LOOK_SECONDS = 0.02
SLEEPS_AFTER = 0.25  # seconds; an actor that runs for longer, without waiting for a lock, is skipped
IS_WAITING = """
SELECT pg_stat_clear_snapshot(),
    EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock')
"""


class Scheduler:
    """One run. The same `chance` gives the same priorities, and nearly always the same order of statements."""

    def __init__(self, chance: Random, actors: int) -> None:
        self._priorities = chance.sample(range(actors), actors)
        self._changes = set(chance.sample(range(STEPS), CHANGES))
        self._states, self._servers = [RUNS] * actors, [0] * actors
        self._changed = threading.Condition()
        self.turns: list[int] = []  # the actor of each step

    def run(self, acts: Sequence[Callable[[], T]]) -> list[T]:
        """Run the actors to their ends, and return their results."""
        with ThreadPoolExecutor(len(acts)) as pool:
            started = [pool.submit(self._act, actor, act) for actor, act in enumerate(acts)]
            while any(state != ENDED for state in self._states):
                self._let_one_run()
            return [one.result() for one in started]

    def _act(self, actor: int, act: Callable[[], T]) -> T:
        try:
            with connection.execute_wrapper(partial(self._stop, actor)):
                return act()
        finally:
            connection.close()
            self._change(actor, ENDED)

    def _stop(self, actor: int, execute: Callable[..., Any], *given: Any) -> Any:
        self._servers[actor] = connection.connection.info.backend_pid
        self._change(actor, STOPPED)
        with self._changed:
            self._changed.wait_for(lambda: self._states[actor] == RUNS)
        return execute(*given)

    def _change(self, actor: int, state: str) -> None:
        with self._changed:
            self._states[actor] = state
            self._changed.notify_all()

    def _let_one_run(self) -> None:
        """Wait until each actor has stopped or ended, or waits or sleeps. Then let the next one run."""
        for actor in range(len(self._states)):
            self._wait_for(actor)
        stopped = [actor for actor, state in enumerate(self._states) if state == STOPPED]
        if stopped:
            self._change(self._next_of(stopped), RUNS)

    def _wait_for(self, actor: int) -> None:
        for _ in range(round(SLEEPS_AFTER / LOOK_SECONDS)):
            with self._changed:
                if self._changed.wait_for(lambda: self._states[actor] != RUNS, LOOK_SECONDS):
                    return
            if self._is_waiting(actor):
                return

    def _is_waiting(self, actor: int) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(IS_WAITING, [self._servers[actor]])
            return bool(cursor.fetchone()[1])

    def _next_of(self, stopped: Sequence[int]) -> int:
        chosen = max(stopped, key=self._priorities.__getitem__)
        if len(self.turns) in self._changes:
            self._priorities[chosen] = min(self._priorities) - 1
            chosen = max(stopped, key=self._priorities.__getitem__)
        self.turns.append(chosen)
        return chosen
