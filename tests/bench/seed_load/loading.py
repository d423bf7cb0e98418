"""Fills the database with checkouts in final states, and with all rows that belong to them.

The money of the checkouts is in the ledger. It is not in the bank's books, because the checkouts are only
read. During the load, triggers and foreign keys are disabled, because otherwise the load would take hours. A
test and the ledger proof check that the rows obey them nevertheless.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.utils import ProgrammingError

from checkout.models import CALLS
from config.lib import clock
from config.lib.database import partitions
from payments.models import LedgerClosing, LedgerSum, Merchant
from tests.bench.seed_load import past_orders
from webhooks.models import PARTITIONED
from webhooks.outbox import API_VERSION

CHUNK = 10_000  # checkouts in one transaction
# By default, the checkouts are too old for reconciliation, which would not find them at the provider.
FIRST, LAST = timedelta(days=730), timedelta(days=3)
_SETTINGS = (
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL synchronous_commit = off",
    "SET LOCAL work_mem = '64MB'",
    "SET LOCAL temp_buffers = '128MB'",
    "SET LOCAL session_replication_role = replica",
)


class CannotLoad(Exception):
    """Raised if the database cannot be filled. The message is a sentence with the reason."""


def load(
    wanted: int,
    *,
    merchants: Sequence[UUID] = (),
    between: tuple[datetime, datetime] | None = None,
    say: Callable[[str], object],
) -> None:
    """Create `wanted` checkouts for the merchants (by default the oldest merchant), and report the progress.

    The first merchant gets half of the orders. The other half is divided equally among all merchants. The
    orders are spread evenly over the last two years, or over the period `between`.

    Raise CannotLoad in production, if a merchant is unknown or missing, if `wanted` is less than 1, or if the
    database role is not allowed to disable triggers.
    """
    if settings.ENVIRONMENT == "production":
        raise CannotLoad("These orders never happened: they do not belong into production.")
    if wanted < 1:
        raise CannotLoad("There must be at least 1 checkout.")
    owners, now = _merchants(merchants), clock.now()
    begin, end = between or (now - FIRST, now - LAST)
    facts = {
        "begin": begin,
        "step": (end - begin) / wanted,
        "latest": max(end, now - LAST),
        # There are no partitions for older events and API calls.
        "reported_since": now - settings.WEBHOOK_RETENTION,
        "calls_since": now - settings.API_CALL_RETENTION,
        "merchants": owners,
    }
    started = time.monotonic()
    _reopen_closed_days()
    for table in PARTITIONED:
        partitions.make(table, (now - settings.WEBHOOK_RETENTION).date(), now.date())
    partitions.make(CALLS, (now - settings.API_CALL_RETENTION).date(), now.date())
    for done in _load(facts, wanted):
        rate = done / (time.monotonic() - started)
        say(f"{done:>10,} of {wanted:,} checkouts · {rate:,.0f}/s")
    _analyze()
    say(f"{', '.join(map(str, owners))}: {wanted:,} checkouts more.")


def _reopen_closed_days() -> None:
    """Reopen all closed days of the ledger, because the new orders have postings on these days."""
    with transaction.atomic():
        LedgerClosing.objects.all().delete()
        LedgerSum.objects.all().delete()


def _merchants(named: Sequence[UUID]) -> list[UUID]:
    rows = Merchant.objects.order_by("created_at").values_list("pk", flat=True)
    if not named:
        found = list(rows[:1])
        if not found:
            raise CannotLoad("There is no merchant: make one with create_merchant.")
        return found
    if strangers := set(named) - set(rows.filter(pk__in=named)):
        raise CannotLoad(f"No merchant has the id {strangers.pop()}: make one with create_merchant.")
    return list(named)


def _load(facts: dict[str, Any], wanted: int) -> Iterator[int]:
    """Write one chunk after another. After each chunk, yield the number of checkouts written so far."""
    for first, end in pairwise([*range(0, wanted, CHUNK), wanted]):
        _write(facts | {"first": first, "last": end - 1})
        yield end


def _write(facts: dict[str, Any]) -> None:
    times = {"lifetime": settings.UNPAID_CHECKOUT_LIFETIME, "hold": settings.HOLD, "api_version": API_VERSION}
    with transaction.atomic(), connection.cursor() as cursor:
        try:
            for setting in _SETTINGS:
                cursor.execute(setting)
        except ProgrammingError as refused:
            raise CannotLoad(f"Load as a superuser of the database: {refused}") from refused
        for function in past_orders.FUNCTIONS:
            cursor.execute(function)
        for statement in past_orders.CHUNK:
            cursor.execute(statement, facts | times)
            if statement.lstrip().startswith("CREATE TEMP TABLE"):
                table = statement.split()[3]
                # Without new statistics, PostgreSQL would plan the next statements for a table with few rows.
                cursor.execute(f"ANALYZE {table}")
        cursor.execute(f"DROP TABLE {past_orders.TOLD}")
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")


def _analyze() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute("ANALYZE")
