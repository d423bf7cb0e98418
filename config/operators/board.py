"""The figures and lists of the operators' overview: fewer than twenty statements, each reading open rows alone.

Rule operator.page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from config.lib import clock
from config.operators import ages, queues
from payments import due, money
from payments.models import Discrepancy, Merchant, Operation, Switch
from webhooks.models import Delivery, Endpoint

LISTED = 50
MAXIMUM = 1000  # rows that are counted


@dataclass(frozen=True)
class UnresolvedOperation:
    """An operation whose outcome is not known yet."""

    operation: Operation
    amount: str
    age: str
    verdict: str


@dataclass(frozen=True)
class Board:
    """The overview at one moment. Lists have the oldest rows and their ages; `parked` is counted up to `maximum`."""

    stops: Sequence[Switch]
    queues: Sequence[queues.Queue]
    unresolved: Sequence[UnresolvedOperation]
    discrepancies: Sequence[tuple[Discrepancy, str]]
    failing: Sequence[tuple[Endpoint, str]]
    parked: int
    maximum: int = MAXIMUM


def read() -> Board:
    """Return the board as it is now."""
    now = clock.now()
    return Board(
        stops=list(Switch.objects.filter(is_stopped=True).select_related("merchant")),
        queues=queues.read(now),
        unresolved=_unresolved(now),
        discrepancies=_discrepancies(now),
        failing=_failing(now),
        parked=_parked_today(now),
    )


def _unresolved(now: datetime) -> list[UnresolvedOperation]:
    rows = Operation.objects.filter(state__in=Operation.OPEN).select_related("payment__merchant")
    return [_as_unresolved(operation, now) for operation in rows.order_by("created_at")[:LISTED]]


def _as_unresolved(operation: Operation, now: datetime) -> UnresolvedOperation:
    age = now - operation.created_at
    amount = money.display(operation.amount, operation.payment.currency)
    return UnresolvedOperation(operation, amount, ages.in_words(age), queues.verdict(age, due.PATIENT_FOR))


def _discrepancies(now: datetime) -> list[tuple[Discrepancy, str]]:
    rows = Discrepancy.objects.filter(closed_at=None).select_related("merchant").order_by("created_at")
    return [(row, ages.in_words(now - row.created_at)) for row in rows[:LISTED]]


def _failing(now: datetime) -> list[tuple[Endpoint, str]]:
    rows = Endpoint.objects.filter(failing_since__isnull=False, subscription__ended_at=None)
    rows = rows.select_related("subscription__merchant").order_by("failing_since")
    return [(row, ages.in_words(now - row.failing_since)) for row in rows[:LISTED] if row.failing_since]


def _parked_today(now: datetime) -> int:
    """Count today's parked deliveries, merchant by merchant, since the index begins with the merchant."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    rows = Delivery.objects.filter(status=Delivery.Status.PARKED, ended_at__gte=midnight)
    return rows.filter(merchant__in=Merchant.objects.all())[:MAXIMUM].count()
