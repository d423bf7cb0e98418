"""Emits events at a fixed rate, and measures how long each delivery is delayed."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from payments.models import Merchant
from tests.bench.webhooks import figures
from tests.bench.webhooks.stage import Stage
from webhooks.models import EventType

PATIENCE_SECONDS = 20
MIXED = (EventType.AUTHORIZED, EventType.VOIDED)


@dataclass(frozen=True)
class Flow:
    """The delays that were measured. The events of one merchant can be left out."""

    delays: Sequence[float]  # ms from the commit to the first byte at the receiver
    missing: int
    latest: float  # the longest delay of the emitter behind its schedule, in ms

    def percentile(self, share: float) -> float:
        return figures.percentile(self.delays, share)


def flow(stage: Stage, merchants: Sequence[Merchant], *, rate: float, count: int, without: int = -1) -> Flow:
    """Emit `count` events for the merchants in turn. Measure all events except those of `merchants[without]`."""
    told = stage.emitter.ask(
        "paced",
        merchants=[str(merchant.pk) for merchant in merchants],
        types=[kind.value for kind in MIXED],
        rate=rate,
        count=count,
    )
    committed = {event: at for event, at, place in told["committed"] if place != without}
    arrived = _first_bytes(stage, set(committed))
    delays = [(arrived[event] - at) / 1e6 for event, at in committed.items() if event in arrived]
    return Flow(delays, len(committed) - len(delays), told["latest"] * 1000)


def _first_bytes(stage: Stage, events: set[str]) -> dict[str, int]:
    """Wait at most PATIENCE_SECONDS for all events. Return the first arrival of each (ns since the epoch)."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        arrived: dict[str, int] = {}
        for event, at, _ in stage.arrivals():
            arrived.setdefault(event, at)
        if events <= arrived.keys() or time.monotonic() > deadline:
            return arrived
        time.sleep(0.2)
