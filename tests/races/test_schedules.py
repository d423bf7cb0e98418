"""The SQL statements of three actions on a checkout are interleaved. Each order has exactly one outcome."""

import itertools
import time
from functools import partial
from random import Random
from uuid import UUID

import pytest

from checkout import captures
from checkout.models import Checkout, orders
from checkout.proof import ledger_proof
from config.lib.prepared import Prepared
from tests.races import rivals
from tests.races.scheduler import Scheduler
from tests.races.test_pairs import AT_ONCE, Fresh

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.rule("capture.one")]
FOUND_WITHIN = 60.0


@pytest.fixture(autouse=True)
def _short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "JOIN_SECONDS", 0.05)


def play(fresh: Fresh, seed: int, state: str) -> Scheduler:
    """Run three random actions in an order that depends on the seed. Check their outcome and the ledger."""
    chance = Random(f"{state} {seed}")
    names = chance.choices((*AT_ONCE[state], "take over"), k=3)
    checkout, order = fresh(state), Scheduler(chance, actors=3)
    answers = order.run([partial(rivals.attempt, name, checkout) for name in names])
    # If another process takes over a capture and ends it after the deadline, the caller can be left without
    # an outcome.
    further = ["outcome_unknown"] if "take over" in names else []
    rivals.check(checkout, answers, *further)
    assert ledger_proof.find_breaches() == []
    return order


@pytest.mark.parametrize("state", AT_ONCE)
def test_each_order_has_one_outcome(fresh: Fresh, state: str) -> None:
    for seed in range(3):
        play(fresh, seed, state)


@pytest.mark.long
@pytest.mark.parametrize("state", AT_ONCE)
def test_forty_orders_have_one_outcome(fresh: Fresh, state: str) -> None:
    for seed in range(3, 43):
        play(fresh, seed, state)


def test_the_actions_are_interleaved_and_a_seed_repeats_its_order(fresh: Fresh) -> None:
    first, again, other = (play(fresh, seed, "held").turns for seed in (5, 5, 6))
    assert first[:20] == again[:20] != other[:20]


def without_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the code read checkouts without a row lock where it normally locks them.

    The tests must then find a race.
    """
    rows = Checkout.objects.select_related("merchant")
    by_id = Prepared(lambda pk: rows.filter(pk=pk), UUID, read_at="locked_at")
    by_merchant = Prepared(
        lambda pk, merchant: rows.filter(pk=pk, merchant=merchant), UUID, UUID, read_at="locked_at"
    )
    monkeypatch.setattr(orders, "_LOCKED", by_id)
    monkeypatch.setattr(orders, "_LOCKED_OF_MERCHANT", by_merchant)


def test_a_lock_that_is_missing_is_found_within_a_minute(
    fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_lock(monkeypatch)
    end = time.monotonic() + FOUND_WITHIN
    for seed in itertools.count():
        try:
            play(fresh, seed, "held")
        except AssertionError as error:
            print(f"\nWithout the row lock, order {seed} has no single outcome: {str(error).splitlines()[0]}")
            return
        assert time.monotonic() < end, f"not found in {seed} orders"
