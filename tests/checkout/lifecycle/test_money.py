"""Money after the capture: whatever happens, in whatever order, each card ends as the bank's books have it."""

import logging
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from checkout import tasks
from payments.models import Merchant
from tests.checkout.lifecycle.money import Money
from tests.checkout.lifecycle.test_lifecycle import LoudLog

Walk = Callable[[settings], None]
ORDINARY = settings(
    max_examples=8,
    stateful_step_count=20,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture
def walk(acme: Merchant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Walk:
    """Let the money of as many orders walk as the settings say."""
    caplog.set_level(logging.CRITICAL, "payments")
    monkeypatch.setattr(tasks, "log", LoudLog())

    class Life(Money):
        def __init__(self) -> None:
            super().__init__(acme)

    return lambda chosen: run_state_machine_as_test(Life, settings=chosen)


@pytest.mark.django_db
class TestTheMoneyOfAnOrder:
    @pytest.mark.long
    def test_ends_on_the_right_cards(self, walk: Walk) -> None:
        walk(ORDINARY)

    @pytest.mark.long
    def test_ends_on_the_right_cards_in_three_hundred_walks(self, walk: Walk) -> None:
        walk(settings(ORDINARY, max_examples=300, stateful_step_count=40))
