"""Measures how late holds are voided during a sale.

2,000 holds end within twenty seconds while 200 buyers a minute buy. The stage is that of `sale`, and the
holds belong to its merchant, who is notified of each void. As in `lag`, the lag is the time from the deadline
to the commit that voids the hold. The bank releases the cards after that, as fast as its pace and the
workers' slots allow. The time of the releases is printed and has no budget.
"""

import time
from pathlib import Path

from tests.bench.api import report, sale
from tests.bench.sale import stage
from tests.bench.sale.holding import Holding, Lags

HOLDS, ENDING = 2_000, 20.0  # seconds in which they end
BUYERS, WITHIN = 200, 60.0  # a third of the sale's rate
P99 = 0.5  # seconds
PATIENCE = 600.0  # seconds after which the bench stops waiting for the bank's releases
LOOK = 2.0  # seconds between two checks


def run(folder: Path, scale: float) -> None:
    """Print how late the holds were voided, and what the buyers saw during that time."""
    place = folder / "lapse"
    place.mkdir()
    count, within = max(20, round(BUYERS * scale)), WITHIN * scale
    with stage.ready(place) as running:
        sale.arrived(running, sale.WARM, 4.0, first=sale.LAST)
        report.progress("making holds")
        holding = Holding(running, max(100, round(HOLDS * scale)))
        holding.spread(ahead=within / 3, within=ENDING * scale)  # the first buyers are at the bank by then
        figures = sale.measured(running, place, count, within, first=0)
        _tell(holding, holding.lags())
        sale.judge("lapse", figures)
        _wait_for_releases(holding)
        running.service.prove_ledger()
        report.line("the ledger is proven")


def _tell(holding: Holding, lags: Lags) -> None:
    judged = report.judged("void lag in a sale, p99 s", lags.p99, P99)
    row = (f"{lags.voided:,} of {holding.count:,}", f"{lags.p50:.3f}", judged, f"{lags.longest:.3f}")
    report.table(("voids", "p50 s", "p99 s", "longest s"), [row])
    if lags.voided != holding.count:
        report.miss(f"void lag in a sale: {holding.count - lags.voided:,} holds were still held at the end")


def _wait_for_releases(holding: Holding) -> None:
    began = time.monotonic()
    while left := holding.unreleased():
        if time.monotonic() - began > PATIENCE:
            report.miss(f"the bank still holds {left:,} cards")
            return
        time.sleep(LOOK)
    report.line(f"the bank has released all cards {time.monotonic() - began:.0f} s after the last buyer")
