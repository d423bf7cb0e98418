"""Random tests of the money after a capture: at the end, our records and the bank's agree for each card."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from django.test import override_settings
from hypothesis import HealthCheck, Phase
from hypothesis import settings as how
from hypothesis.stateful import run_state_machine_as_test

from checkout import tasks
from payments import provider
from payments.models import Merchant
from tests.checkout.lifecycle.banks import Bank, SandboxBank, StripeBank
from tests.checkout.lifecycle.money import Money
from tests.checkout.lifecycle.test_lifecycle import LoudLog
from tests.payments.providers.conformance.stripe import StripeDesk
from tests.payments.stripe_peer import remote, shops
from tests.payments.stripe_peer.remote import Remote

Walk = Callable[[how], None]
ORDINARY = how(
    max_examples=8,
    stateful_step_count=20,
    derandomize=False,
    print_blob=True,
    phases=[Phase.generate],  # no shrinking, because shrinking a failed run takes hours
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def running_peer() -> Iterator[Remote]:
    with remote.running() as peer:
        yield peer


@pytest.fixture
def stripe(running_peer: Remote, monkeypatch: pytest.MonkeyPatch) -> Iterator[StripeBank]:
    with shops.listening() as shop, ExitStack() as layer:

        def anew() -> StripeDesk:
            running_peer.switch("clear")
            desk = StripeDesk(running_peer, shop)
            # End the previous override of the settings: 300 nested ones would exceed the recursion limit.
            layer.close()
            layer.enter_context(override_settings(**desk.settings))
            monkeypatch.setattr(provider, "current_provider", lambda: desk.provider)
            return desk

        yield StripeBank(anew)


@pytest.fixture(params=["sandbox", "stripe"])
def bank(request: pytest.FixtureRequest) -> Bank:
    if request.param == "sandbox":
        return SandboxBank()
    made: StripeBank = request.getfixturevalue("stripe")
    return made


@pytest.fixture
def walk(
    acme: Merchant, bank: Bank, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Walk:
    """Return a function that runs the state machine with the given Hypothesis settings."""
    caplog.set_level(logging.CRITICAL, "payments")
    monkeypatch.setattr(tasks, "log", LoudLog())

    class Life(Money):
        def __init__(self) -> None:
            super().__init__(acme, bank)

    return lambda chosen: run_state_machine_as_test(Life, settings=chosen)


@pytest.mark.django_db
class TestTheMoneyOfAnOrder:
    @pytest.mark.long
    def test_ends_on_the_right_cards(self, walk: Walk) -> None:
        walk(ORDINARY)

    @pytest.mark.long
    def test_ends_on_the_right_cards_in_three_hundred_walks(self, walk: Walk) -> None:
        walk(how(ORDINARY, max_examples=300, stateful_step_count=40))
