"""A small sale: no buyer is refused, and no order is lost, late or charged twice."""

import asyncio
from pathlib import Path

import pytest

from tests.bench.sale import buyers, stage

COUNT, WITHIN = 40, 12.0


@pytest.mark.long
@pytest.mark.journey
@pytest.mark.rule("pay.held", "money.one_capture", "money.proof")
def test_in_small_refuses_and_loses_nobody(tmp_path: Path) -> None:
    with stage.ready(tmp_path) as running:
        bought = asyncio.run(buyers.arrive(running.sale(), COUNT, WITHIN))
        assert [one.refusal for one in bought if one.refusal] == []
        assert {one.states[-1] for one in bought} == {"confirmed"}
        assert (running.captured_late(), running.captured_twice()) == (0, 0)
        running.service.prove_ledger()
