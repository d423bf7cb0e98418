"""Measures the list of deliveries for a merchant with a long log, compared with a short log."""

import contextlib
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import psycopg
from django.db import connection, transaction

from payments.models import Merchant
from tests.bench.webhooks import backlog, emitter, figures
from tests.bench.webhooks.figures import Figure
from tests.bench.webhooks.processes import Clerk, Worker
from tests.bench.webhooks.reader import LONG_AGO
from tests.bench.webhooks.stage import Stage
from webhooks.models import Attempt, EventType

SHORT, LONG = 1_000, 1_000_000
TIMES, WARM = 150, 10
PATH = "webhooks/deliveries?limit=50"
OLD, MIDDLE = LONG_AGO * 0.6, 0.5
# For each filter, the position in the log at which its deep page begins: 0 is the oldest entry, 1 the newest.
FILTERS = {
    "": MIDDLE,
    "&status=delivered": MIDDLE,
    "&status=failed": OLD,
    f"&event_type={EventType.VOIDED.value}": MIDDLE,
    f"&event_type={EventType.TEST.value}": OLD,
    f"&status=failed&event_type={EventType.VOIDED.value}": OLD,
}
# The deliveries that the service makes: the receiver's HTTP status, and the types of the events. The logs
# consist of copies of these deliveries' rows.
WRITTEN = (
    (200, (EventType.AUTHORIZED, EventType.VOIDED)),
    (404, (EventType.VOIDED, EventType.TEST)),
)


def measure(stage: Stage) -> Iterator[Figure]:
    """Compare the pages of a log with 1,000,000 attempts and of a log with 1,000. The bound is 1.2 ×."""
    merchant = _write_patterns(stage)
    connection.close()  # a database with open connections cannot be copied
    with contextlib.ExitStack() as stack:
        readers = []
        for name, count in (("log_short", SHORT), ("log_long", stage.scaled(LONG, minimum=2 * SHORT))):
            figures.progress(f"pages: writing a log of {count} attempts")
            readers.append(stack.enter_context(_reader(stage, name)))
            readers[-1].ask("fill", merchant=str(merchant.pk), count=count)
        times = stage.scaled(TIMES, minimum=10)
        for filters, share in FILTERS.items():
            figures.progress(f"pages: {PATH}{filters}")
            named = filters.lstrip("&") or "no filter"
            yield from _compared(readers, f"first, {named}", [f"{PATH}{filters}"] * 2, times)
            deep = [f"{PATH}{filters}&cursor={reader.ask('cursor', share=share)}" for reader in readers]
            yield from _compared(readers, f"deep, {named}", deep, times)


def _write_patterns(stage: Stage) -> Merchant:
    """Let the service deliver the events of WRITTEN, so that there are rows to copy. Return the merchant."""
    (merchant,) = backlog.subscribe(stage.addresses([0]), "Pages")
    with stage.worker() as worker:
        for status, kinds in WRITTEN:
            stage.receiver.ask("behave", endpoint=0, status=status, seconds=0)
            for kind in kinds:
                with transaction.atomic():
                    emitter.emit(merchant, kind)
            _await_log(worker, merchant, status, len(kinds))
    backlog.retire([merchant])
    stage.receiver.ask("behave", endpoint=0, status=200, seconds=0)
    return merchant


def _await_log(worker: Worker, merchant: Merchant, status: int, count: int) -> None:
    rows = Attempt.objects.filter(merchant=merchant, ended_at__isnull=False, http_status=status)
    worker.until(lambda: rows.count() == count, within=30, what="a short log")


@contextlib.contextmanager
def _reader(stage: Stage, name: str) -> Iterator[Clerk]:
    """For the duration of the block, run a reader process on a copy of the database. Then drop the copy."""
    url = stage.variables["DATABASE_URL"]
    own = urlsplit(url).path.strip("/")
    with psycopg.connect(url.replace(f"/{own}?", "/postgres?"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {own}")
        with stage.clerk("reader", name, DATABASE_URL=url.replace(f"/{own}?", f"/{name}?")) as reader:
            yield reader
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _compared(readers: Sequence[Clerk], name: str, paths: Sequence[str], times: int) -> Iterator[Figure]:
    """Request a page from both readers in turn, so that other work on the machine affects both."""
    wall: list[list[float]] = [[], []]
    cpu: list[list[float]] = [[], []]
    for number in range(WARM + times):
        for place, (reader, path) in enumerate(zip(readers, paths, strict=True)):
            told = reader.ask("get", path=path)
            if number >= WARM:
                wall[place].append(told["wall"])
                cpu[place].append(told["cpu"])
    (short, long), (short_cpu, long_cpu) = (map(figures.median, column) for column in (wall, cpu))
    yield figures.against(f"pages: {name}", long, short, "ms", bound=1.2)
    yield figures.against(f"pages: {name}: CPU", long_cpu, short_cpu, "ms")
