"""Measures how late holds are voided during a sale.

2,000 holds lapse within twenty seconds, while 200 buyers buy within a minute. The same processes run as in
the section `sale`. The holds belong to the sale's merchant, who is notified of each void. As in `lag`, the
lag is the time from the deadline to the commit that voids the hold. Afterwards, the bank releases the cards,
as fast as its pace and the workers' slots allow. The time of the releases is printed and has no budget.
"""

import time
from pathlib import Path

from tests.bench.api import report, sale
from tests.bench.sale import stage
from tests.bench.sale.holding import Holding, Lags

HOLDS, ENDING = 2_000, 20.0  # all holds lapse within ENDING seconds
BUYERS, WITHIN = 200, 60.0  # WITHIN is in seconds; `sale` has three times as many buyers
P99 = 0.5  # seconds
PATIENCE = 600.0  # the bench waits at most this many seconds for the bank's releases
LOOK = 2.0  # seconds between two checks


def run(folder: Path, scale: float) -> None:
    """Print how late the holds were voided, and the buyers' figures in this time."""
    place = folder / "lapse"
    place.mkdir()
    count, within = max(20, round(BUYERS * scale)), WITHIN * scale
    with stage.ready(place) as running:
        sale.arrived(running, sale.WARM, 4.0, first=sale.LAST)
        report.progress("making holds")
        holding = Holding(running, max(100, round(HOLDS * scale)))
        # When the first hold lapses, the first buyers have reached the bank's page.
        holding.spread(ahead=within / 3, within=ENDING * scale)
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
