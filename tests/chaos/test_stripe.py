"""After every fault of Stripe or the network, no data is lost, no effect happens twice, and all work ends."""

from collections.abc import Iterator

import pytest

from tests.chaos.stripe import world
from tests.chaos.stripe.world import FAULTS, StripeWorld
from tests.chaos.test_chaos import ONLY, break_everything
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]


@pytest.fixture(scope="module")
def at_stripe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StripeWorld, Service]]:
    with world.running(tmp_path_factory.mktemp("world at Stripe")) as parts:
        yield parts


@pytest.mark.rule("provider.alike", "doubt.crash")
def test_each_fault_leaves_no_inconsistency(at_stripe: tuple[StripeWorld, Service]) -> None:
    break_everything(at_stripe, range(1, 3), FAULTS)
    assert at_stripe[0].met() >= {fault for fault in FAULTS if ONLY in fault}, "each met a call"
