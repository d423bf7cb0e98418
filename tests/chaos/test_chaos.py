"""After every fault, no data is lost, no effect happens twice, and all work is completed automatically."""

import os
from collections.abc import Mapping

import pytest

from tests.chaos import runs
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.runs import Chaos, Run
from tests.chaos.world import World
from tests.journeys import receiver as receivers
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
SEEDS = int(os.environ.get("SEEDS", "1"))
FIRST = int(os.environ.get("FIRST_SEED", "1"))
ONLY = os.environ.get("FAULT", "")


def break_everything(whole: tuple[World, Service], seeds: range, faults: Mapping[str, Fault]) -> None:
    """Run these faults with every seed. Print the table of results, and fail if there are violations."""
    planned = [Run(fault, seed) for seed in seeds for fault in faults if ONLY in fault]
    with receivers.listening() as receiver:
        results = Chaos(faults, *whole, receiver).run_all(planned)
        print("\n" + runs.table(results))
        broken = [f"{result.run}: {violation}" for result in results for violation in result.violations]
        assert broken == [], "\n".join(broken)
        assert receiver.refused == []
    whole[1].prove_ledger()


class TestEachFault:
    def test_leaves_no_inconsistency(self, whole: tuple[World, Service]) -> None:
        break_everything(whole, range(FIRST, FIRST + SEEDS), FAULTS)

    @pytest.mark.parametrize("seed", range(1, 31))
    def test_leaves_no_inconsistency_with_thirty_seeds(self, whole: tuple[World, Service], seed: int) -> None:
        break_everything(whole, range(seed, seed + 1), FAULTS)
