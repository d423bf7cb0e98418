"""Creates holds that lapse during the sale, in the service's database and in the bank's books."""

import subprocess
import sys
from datetime import timedelta
from typing import NamedTuple

import psycopg

from tests.bench.api import holds
from tests.bench.sale.stage import Stage
from tests.chaos.world import World
from tests.journeys.service import ROOT

_BOOKS = ("bank_charge", "bank_call")  # the order matters, because a call refers to its charge
_MERCHANT = "SELECT id::text FROM payments_merchant ORDER BY created_at DESC LIMIT 1"
_HELD = "SELECT count(*)::int FROM checkout_checkout WHERE merchant_order_id = %s AND status = 'authorized'"
_UNRELEASED = """
SELECT count(*)::int FROM payments_payment p JOIN checkout_checkout c ON c.payment_id = p.id
WHERE c.merchant_order_id = %s AND p.status <> 'voided'
"""


class Lags(NamedTuple):
    """How many of the holds were voided, and how many seconds after their deadlines this happened."""

    voided: int
    p50: float
    p99: float
    longest: float


class Holding:
    """Open holds of the sale's merchant, and their current state."""

    def __init__(self, running: Stage, count: int) -> None:
        self.count = count
        self._world = running.world
        self._merchant = str(self._world.rows(_MERCHANT)[0][0])
        seed = (sys.executable, "-m", "tests.bench.sale.seeding", self._merchant, str(count))
        subprocess.run(seed, env=self._world.variables, cwd=ROOT, check=True)
        _copy_books(self._world)

    def spread(self, *, ahead: float, within: float) -> None:
        """Spread the holds' deadlines evenly over `within` seconds, starting `ahead` seconds from now."""
        start = self._world.rows("SELECT clock_timestamp()")[0][0] + timedelta(seconds=ahead)
        self._world.rows(holds.SPREAD, start, within, self.count, self._merchant, holds.ORDER)

    def held(self) -> int:
        """Return the number of orders that are still held."""
        return int(self._world.rows(_HELD, holds.ORDER)[0][0])

    def unreleased(self) -> int:
        """Return the number of holds that the bank has not released yet."""
        return int(self._world.rows(_UNRELEASED, holds.ORDER)[0][0])

    def lags(self) -> Lags:
        times, voided = self._world.rows(holds.LAGS, self._merchant, holds.ORDER)[0]
        return Lags(voided, *times)


def _copy_books(world: World) -> None:
    """Copy the holds into the bank's own books.

    The holds were created in the service's database, which also has the sandbox bank's tables.
    """
    assert world.books is not None
    with (
        psycopg.connect(world.engines.database_url) as ours,
        psycopg.connect(world.books.database_url) as theirs,
    ):
        for table in _BOOKS:
            with (
                ours.cursor().copy(f"COPY {table} TO STDOUT") as read,
                theirs.cursor().copy(f"COPY {table} FROM STDIN") as written,
            ):
                for lines in read:
                    written.write(lines)
