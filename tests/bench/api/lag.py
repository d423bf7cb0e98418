"""Measures how late holds are voided, with a worker and a beat as in `make run`.

10,000 holds lapse within twenty seconds. The lag is the time from a hold's deadline to the moment when it was
really voided. A checkout's `voided_at` and its history entry do not record this moment, because both record
the deadline. The bench therefore reads when the transaction that wrote the history entry was committed, with
pg_xact_commit_timestamp and the row's xmin. The merchant has no webhook subscription, so no webhooks are
sent.
"""

import os
import time
from datetime import timedelta
from pathlib import Path

import redis
from django.conf import settings
from django.db import connection
from psycopg import conninfo

from checkout.models import Checkout
from config.lib import clock
from config.local import engines
from payments.models import Merchant
from tests.bench.api import app, holds, report
from tests.journeys import polling
from tests.journeys.deployment import Deployment

HOLDS = 10_000
WITHIN = 20.0  # all holds lapse within this many seconds
AHEAD = 5.0  # seconds from the change of the deadlines to the first deadline
PATIENCE = 240.0  # after the last deadline, the bench waits at most this many seconds
PARTS = ("worker", "beat")
P99, LONGEST = 0.25, 0.5  # seconds
LOOK = 2.0  # seconds between two checks


def run(folder: Path, scale: float) -> None:
    """Print the p50, the p99 and the longest lag."""
    app.log_to(folder / "lag.log")
    app.use("lag")
    merchant = Merchant.objects.create(name="Lag")
    count = max(100, round(HOLDS * scale))
    report.progress(f"making {count:,} holds")
    holds.make(merchant, count)
    deployment = _deployment(folder)
    try:
        _start(deployment, folder)
        _let_end(merchant, count)
        _print(merchant, count)
        if not deployment.are_alive():
            raise RuntimeError("worker or beat ended by itself")
    finally:
        deployment.end()


def _deployment(folder: Path) -> Deployment:
    url = conninfo.conninfo_to_dict(os.environ["DATABASE_URL"])
    address = f"postgresql://{url['user']}@/lag?host={url['host']}"
    variables = {**os.environ, "DATABASE_URL": address}
    return Deployment(folder, engines.Engines(address, settings.REDIS_URL, None), variables)


def _start(deployment: Deployment, folder: Path) -> None:
    """Delete the tasks of earlier sections. Start worker and beat, and wait until the worker is ready."""
    with redis.Redis.from_url(settings.REDIS_URL) as broker:
        broker.flushall()
    for part in PARTS:
        deployment.start(part)
    log = folder / "worker.log"
    polling.until(lambda: b" ready." in log.read_bytes(), within=60, what="the worker")
    time.sleep(2)  # the worker's pumps start within this time


def _let_end(merchant: Merchant, count: int) -> None:
    """Set the deadlines. Then wait until no order is held any more, or until PATIENCE is over."""
    first = clock.now() + timedelta(seconds=AHEAD)
    holds.spread(merchant, count, start=first, within=WITHIN)
    if clock.now() >= first:
        raise RuntimeError(f"{AHEAD:g} s were not enough to spread {count:,} holds")
    last, looks = first + timedelta(seconds=WITHIN), 0
    while held := Checkout.objects.filter(merchant=merchant, status="authorized").count():
        late = (clock.now() - last).total_seconds()
        if looks % 5 == 0:
            report.progress(f"{held:,} held, {late:+.0f} s after the last end")
        if late > PATIENCE:
            return
        looks += 1
        time.sleep(LOOK)


def _print(merchant: Merchant, count: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(holds.LAGS, [merchant.pk, holds.ORDER])
        (p50, p99, longest), voided = cursor.fetchone()
    judged = report.judged("void lag, p99 s", p99, P99)
    last = report.judged("void lag, longest s", longest, LONGEST)
    row = (f"{voided:,} of {count:,}", f"{p50:.3f}", judged, last)
    report.table(("voids", "p50 s", "p99 s", "longest s"), [row])
    if voided != count:
        report.miss(f"void lag: {count - voided:,} of {count:,} holds were still held at the end")
