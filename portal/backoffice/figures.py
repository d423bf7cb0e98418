"""The figures for /metrics that come from the database. One process reads them, at most once in five seconds.

Rule environment.metrics.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TypeAlias

from django.core.cache import cache

from checkout.models import CALLS, Checkout
from checkout.states import Status
from config.lib import clock
from config.lib.database import partitions, queries
from payments import planning, restore_guard
from payments.inquiring import reconciliation
from payments.models import Discrepancy, LastBackup, Operation, Payment
from portal import statements
from portal.backoffice import queues
from webhooks import lookup
from webhooks.models import PARTITIONED, Delivery, EventType

EVERY_SECONDS = 5  # the minimum time between two reads, in any of the processes
RETENTION_SECONDS = 60  # after this time, figures are discarded, even if newer ones cannot be read
MAX_COUNTED = 1000  # the maximum number of rows that are counted
ENDING_SOON = timedelta(seconds=30)  # a hold ends soon if it has less time left
_TURN, _FIGURES = "metrics.turn", "metrics.figures"

Figure: TypeAlias = tuple[str, str, float]  # a key of TABLE, the value of its label, the number
# For each figure, the name of its label in /metrics ("" without a label), and the figure's description.
TABLE = {
    "checkout_queue_oldest_seconds": ("queue", "How long the oldest row has been due"),
    "checkout_queue_late": ("queue", "1 while the oldest row has waited too long, else 0"),
    "checkout_unresolved_operations": (
        "kind",
        "Operations sent a minute ago or more, outcome unknown (up to 1,000)",
    ),
    "checkout_unresolved_oldest_seconds": ("kind", "Age of the oldest operation whose outcome is unknown"),
    "checkout_discrepancies": ("kind", "Open discrepancies (up to 1,000)"),
    "checkout_holds_unheard": (
        "",
        "Holds that end within 30 s and whose event the merchant has not received yet",
    ),
    "checkout_partitions_ahead_days": ("table", "Number of days, from today, for which partitions exist"),
    "checkout_reconciled_age_seconds": ("", "How long ago the last complete reconciliation began"),
    "checkout_backup_age_seconds": ("", "How long ago the last recorded back-up began"),
    "checkout_archive_failing": ("", "1 while the database's log cannot be archived, else 0"),
    "checkout_closed": ("", "1 while a restored database waits for its repair, else 0"),
    "checkout_figures_taken_timestamp_seconds": ("", "When the figures from the database were read"),
}


def read_figures() -> list[Figure]:
    """Return the figures, at most five seconds old. Raises Error if the database does not answer."""
    if cache.add(_TURN, True, EVERY_SECONDS):
        cache.set(_FIGURES, list(_read_from_database(clock.now())), RETENTION_SECONDS)
    figures: list[Figure] = cache.get(_FIGURES, [])
    return figures


def _read_from_database(now: datetime) -> Iterator[Figure]:
    for queue in queues.read_queues(now):
        age = (now - queue.since).total_seconds() if queue.since else 0.0
        yield "checkout_queue_oldest_seconds", queue.title, max(0.0, age)
        yield "checkout_queue_late", queue.title, float(queue.verdict == queues.LATE)
    yield from _unresolved_figures(now)
    kinds = Discrepancy.objects.filter(closed_at=None).values_list("kind", flat=True)
    for kind, count in Counter(kinds[:MAX_COUNTED]).items():
        yield "checkout_discrepancies", kind, count
    yield "checkout_holds_unheard", "", _count_unaccepted_holds(now)
    for table in (*PARTITIONED, CALLS):
        yield "checkout_partitions_ahead_days", table.table, partitions.days_ahead(table, now.date())
    yield "checkout_reconciled_age_seconds", "", reconciliation.time_since_last_run(now).total_seconds()
    yield "checkout_backup_age_seconds", "", _age_of_backup(now)
    yield "checkout_archive_failing", "", float(queries.value(statements.IS_ARCHIVE_FAILING))
    yield "checkout_closed", "", float(restore_guard.is_closed())
    yield "checkout_figures_taken_timestamp_seconds", "", now.timestamp()


def _unresolved_figures(now: datetime) -> Iterator[Figure]:
    open_states = (Operation.State.IN_FLIGHT, Operation.State.PENDING, Operation.State.UNKNOWN)
    rows = planning.with_first_sending(Operation.objects.filter(ended_at=None, state__in=open_states))
    old = rows.filter(first_created_at__lte=now - timedelta(minutes=1)).order_by("first_created_at")
    operations = list(old.values_list("kind", "first_created_at")[:MAX_COUNTED])
    counts = Counter(kind for kind, _ in operations)
    for kind in Operation.Kind.values:
        first = next((at for operation_kind, at in operations if operation_kind == kind), now)
        yield "checkout_unresolved_operations", kind, counts[kind]
        yield "checkout_unresolved_oldest_seconds", kind, (now - first).total_seconds()


def _age_of_backup(now: datetime) -> float:
    """Return how many seconds ago the last back-up began. Without a back-up, count from our first payment."""
    made_at = LastBackup.objects.values_list("made_at", flat=True).first()
    first = None if made_at else Payment.objects.order_by("pk").values_list("created_at", flat=True).first()
    return max(0.0, (now - (made_at or first or now)).total_seconds())


def _count_unaccepted_holds(now: datetime) -> int:
    """Count the holds that end soon although the merchant's endpoint has not accepted their event.

    Holds with a parked delivery count too. If an endpoint refuses quickly, the delivery uses up all attempts
    and is parked long before the hold ends.
    """
    holds = Checkout.objects.filter(status=Status.AUTHORIZED, capture_before__range=(now, now + ENDING_SOON))
    checkouts = list(holds.values_list("pk", flat=True)[:MAX_COUNTED])
    events = lookup.events_about(*checkouts).filter(type=EventType.AUTHORIZED)
    checkout_by_event = dict(events.values_list("pk", "checkout_uuid"))
    waiting_deliveries = lookup.deliveries_of(checkout_by_event).filter(
        status__in=(Delivery.Status.PENDING, Delivery.Status.PARKED), subscription__ended_at=None
    )
    return len({checkout_by_event[event] for event in waiting_deliveries.values_list("event", flat=True)})
