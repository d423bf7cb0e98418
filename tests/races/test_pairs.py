"""Races between actions on the same checkout: each race must have exactly one outcome.

In each state of a checkout, every pair of the possible actions races, and so do all possible actions together.
Each action has a separate connection. There are three kinds of races: the actions start at the same moment,
wait in a queue for the row lock, or run between two phases of another action.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import combinations_with_replacement, permutations
from typing import Any, TypeAlias

import pytest
from django.db import connection, connections, transaction
from django.db.backends.postgresql.base import DatabaseWrapper
from pytest_django.plugin import DjangoDbBlocker

from checkout import captures, outcomes
from checkout.models import Checkout
from checkout.proof import ledger_proof
from config.lib import clock
from payments import operations
from payments.models import Discrepancy
from tests.races import rivals
from tests.races.rivals import Answer
from tests.waiting import wait_for, waiting_for_locks

pytestmark = pytest.mark.django_db(transaction=True)
Fresh: TypeAlias = Callable[[str], Checkout]

MERCHANTS = ("capture", "cancel", "lapse", "refund", "notify")
PAYERS = ("pay", "cancel", "lapse", "notify")
CHALLENGED = (*PAYERS, "confirm", "use another card")
# For each state of a checkout, the actions that race in pairs at the same moment.
AT_ONCE: dict[str, tuple[str, ...]] = {
    "created": PAYERS,
    "challenged": CHALLENGED,
    "payment in doubt": (*PAYERS, "use another card"),
    "held": MERCHANTS,
    "taken, in doubt": MERCHANTS,
    "not taken, in doubt": MERCHANTS,
    "captured": MERCHANTS,
    "refund pending": MERCHANTS,
}
# For each state, the actions that wait in a queue for the row lock. An action takes the lock at its
# start or after a call to the bank.
IN_LINE: dict[str, tuple[str, ...]] = {
    "created": ("pay", "cancel", "lapse"),
    "challenged": ("pay", "cancel", "lapse", "use another card"),
    "payment in doubt": ("pay", "cancel", "capture", "lapse", "use another card", "take over"),
    "held": ("capture", "cancel", "lapse", "refund"),
    "taken, in doubt": ("capture", "cancel", "lapse", "refund", "take over"),
    "not taken, in doubt": ("capture", "cancel", "lapse", "refund", "take over"),
    "captured": ("capture", "cancel", "lapse", "refund"),
}
WIDEST = {"payment in doubt", "not taken, in doubt"}
# For each state and each action that calls the bank: the rivals that run between two phases of the action.
BETWEEN: dict[tuple[str, str], tuple[str, ...]] = {
    ("created", "pay"): (*PAYERS, "take over", "fence"),
    ("challenged", "pay"): (*CHALLENGED, "take over", "fence"),
    ("payment in doubt", "take over"): (*PAYERS, "use another card", "take over", "fence"),
    ("held", "capture"): (*MERCHANTS, "take over", "fence"),
    ("taken, in doubt", "take over"): (*MERCHANTS, "take over", "fence"),
    ("not taken, in doubt", "take over"): (*MERCHANTS, "take over", "fence"),
    ("cancelled", "take over"): (*MERCHANTS, "take over"),
    ("refund planned", "take over"): (*MERCHANTS, "take over"),
    ("refund pending", "take over"): (*MERCHANTS, "take over"),
}
PHASES = {
    "before the bank is asked": ((operations, "perform"), (operations, "look_up")),
    "before its answer is recorded": ((outcomes, "record_outcome"),),
}
ROUNDS_OF_ALL = 3


@pytest.fixture(autouse=True)
def _right(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After each test, prove the ledger and check that there is no discrepancy.

    During the test, a capture that finds another open capture waits only 0.05 s for it.
    """
    monkeypatch.setattr(captures, "JOIN_SECONDS", 0.05)
    yield
    assert ledger_proof.find_breaches() == []
    assert not Discrepancy.objects.exists()


@pytest.fixture(autouse=True, scope="module")
def _no_deadlock(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Check that no deadlock happened in PostgreSQL."""
    with django_db_blocker.unblock():
        before = deadlocks()
    yield
    with django_db_blocker.unblock():
        assert deadlocks() == before


def deadlocks() -> int:
    """Return the number of deadlocks that PostgreSQL has counted.

    The connections are closed first, because a connection might report its numbers only when it is closed.
    """
    ours = connections["default"]
    assert isinstance(ours, DatabaseWrapper)
    ours.close()
    ours.close_pool()
    with ours.cursor() as cursor:
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def on_own_connection(rival: str, checkout: Checkout, start: Callable[[], object] = lambda: None) -> Answer:
    """Open a separate connection, call `start`, and then run the rival on this connection."""
    try:
        connection.ensure_connection()
        start()
        return rivals.attempt(rival, checkout)
    finally:
        connection.close()


def race(checkout: Checkout, *names: str) -> list[Answer]:
    """Start all rivals at the same moment, and return their results."""
    barrier = threading.Barrier(len(names))
    with ThreadPoolExecutor(len(names)) as pool:
        started = [pool.submit(on_own_connection, name, checkout, lambda: barrier.wait(5)) for name in names]
        return [rival.result() for rival in started]


def queue(checkout: Checkout, *names: str) -> list[Answer]:
    """Let the rivals wait for the row lock in this order. Release the lock, and return their results."""
    with ThreadPoolExecutor(len(names)) as pool:
        with transaction.atomic():
            Checkout.objects.locked(checkout.pk)
            started = []
            for name in names:
                started.append(pool.submit(on_own_connection, name, checkout))
                wait_for_queue_of(len(started))
        return [rival.result() for rival in started]


def wait_for_queue_of(length: int) -> None:
    """Wait until `length` connections wait for a lock. Fail if this takes more than 2.5 seconds."""
    wait_for(lambda: waiting_for_locks() == length, within=2.5)


def come_between(patched: pytest.MonkeyPatch, phase: str, rival: str, checkout: Checkout) -> list[Answer]:
    """Arrange that a rival runs from start to end when the next action reaches this phase.

    Return a list to which the rival's result will be added.
    """
    waiting, answers = [rival], list[Answer]()

    def interrupted(step: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*given: Any, **named: Any) -> Any:
            if waiting:
                answers.extend(race(checkout, waiting.pop()))
            return step(*given, **named)

        return stepped

    for module, name in PHASES[phase]:
        patched.setattr(module, name, interrupted(getattr(module, name)))
    return answers


@pytest.mark.rule("capture.one")
@pytest.mark.long
class TestAtTheSameMoment:
    @pytest.mark.parametrize("state", AT_ONCE)
    def test_each_pair_has_one_outcome(self, fresh: Fresh, state: str) -> None:
        for pair in combinations_with_replacement(AT_ONCE[state], 2):
            checkout = fresh(state)
            rivals.check(checkout, race(checkout, *pair))

    @pytest.mark.parametrize("state", AT_ONCE)
    def test_all_together_have_one_outcome(self, fresh: Fresh, state: str) -> None:
        for _ in range(ROUNDS_OF_ALL):
            checkout = fresh(state)
            rivals.check(checkout, race(checkout, *AT_ONCE[state]))

    @pytest.mark.parametrize(
        ("state", "ends"),
        [
            ("held", {"captured", "voided"}),
            ("taken, in doubt", {"captured"}),
            ("not taken, in doubt", {"voided"}),
        ],
    )
    def test_at_the_deadline_a_hold_is_either_captured_or_released(
        self, fresh: Fresh, state: str, ends: set[str]
    ) -> None:
        for milliseconds in range(0, 20, 4):
            checkout = fresh(state)
            deadline = clock.now() + timedelta(milliseconds=milliseconds)
            rivals.end_hold(checkout, deadline)
            rivals.check(checkout, race(checkout, "capture", "cancel", "watch"))
            assert checkout.status in ends
            assert checkout.void_reason != "auth_expired" or checkout.voided_at == deadline


class TestInTheQueue:
    @pytest.mark.parametrize(
        "state", [pytest.param(state, marks=[pytest.mark.long] * (state in WIDEST)) for state in IN_LINE]
    )
    def test_each_action_sees_the_result_of_the_previous_one(self, fresh: Fresh, state: str) -> None:
        for pair in permutations(IN_LINE[state], 2):
            checkout = fresh(state)
            rivals.check(checkout, queue(checkout, *pair))


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.long
class TestBetweenThePhases:
    @pytest.mark.parametrize(("state", "verb"), BETWEEN)
    def test_a_complete_rival_action_leaves_one_outcome(
        self, fresh: Fresh, monkeypatch: pytest.MonkeyPatch, phase: str, state: str, verb: str
    ) -> None:
        for rival in BETWEEN[state, verb]:
            checkout = fresh(state)
            with monkeypatch.context() as patched:
                between = come_between(patched, phase, rival, checkout)
                first = rivals.attempt(verb, checkout)
            assert len(between) == 1, "nobody came between"
            further = ["provider_error"] if rival == "fence" else []
            rivals.check(checkout, [first, *between], *further)
