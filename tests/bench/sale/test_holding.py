"""If holds lapse during a small sale, all are voided and released, and no buyer is affected."""

import asyncio
from pathlib import Path

import pytest

from tests.bench.sale import buyers, stage
from tests.bench.sale.holding import Holding
from tests.journeys import polling

# ENDING: all holds lapse within this many seconds. LATE: the longest lag that is allowed, in seconds. It is
# generous, because other tests run at the same time.
HOLDS, ENDING, LATE = 60, 3.0, 5.0
COUNT, WITHIN = 40, 16.0


@pytest.mark.long
@pytest.mark.journey
@pytest.mark.rule(
    "lapse.void", "lapse.together", "lapse.release", "money.proof", "pay.held", "money.one_capture"
)
def test_all_unclaimed_holds_are_voided_and_released_on_time_during_a_sale(tmp_path: Path) -> None:
    with stage.ready(tmp_path) as running:
        holding = Holding(running, HOLDS)
        assert (holding.held(), holding.unreleased()) == (HOLDS, HOLDS)
        holding.spread(ahead=4.0, within=ENDING)
        bought = asyncio.run(buyers.arrive(running.sale(), COUNT, WITHIN))
        lags = holding.lags()
        assert (lags.voided, lags.longest < LATE) == (HOLDS, True), lags
        assert [one.refusal for one in bought if one.refusal] == []
        assert {one.states[-1] for one in bought} == {"confirmed"}
        polling.until(lambda: not holding.unreleased(), within=60, what="the bank's releases")
        assert (running.captured_late(), running.captured_twice()) == (0, 0)
        running.service.prove_ledger()
