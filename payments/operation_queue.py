"""Decides when an open operation is due again, and lets processes claim due operations (rule doubt.unknown)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q

from config.lib import clock
from config.lib.database import queries
from payments import restore_guard, statements
from payments.models import Operation

LEASE = timedelta(seconds=10)  # after this, another process can safely retry with the same key
# How long a payer waits for their bank before they may use another card.
MAX_PAYER_WAIT = timedelta(minutes=1)
# Slightly longer than the time that a payer has to confirm at their bank.
FREQUENT_CHECKS_FOR = timedelta(minutes=15)
PENDING_TOO_LONG = timedelta(minutes=10)  # limit for a capture that the provider has accepted
IN_DOUBT_TOO_LONG = timedelta(hours=24)
Kind: TypeAlias = Operation.Kind
State: TypeAlias = Operation.State


def is_in_doubt(operation: Operation) -> bool:
    """Return whether the operation was sent and its outcome is not known yet."""
    return operation.state in (State.IN_FLIGHT, State.PENDING, State.UNKNOWN)


def is_leased(operation: Operation, now: datetime) -> bool:
    """Return whether a process still leases the operation. The lease ends when the operation is due again."""
    at = operation.next_attempt_at
    return operation.lease_token is not None and at is not None and at > now


def retry_delay(operation: Operation, state: State, now: datetime) -> timedelta:
    """Return the delay before the next call or look-up. The delay grows with each one (rule doubt.authorize)."""
    age, tries = now - operation.created_at, operation.attempts
    if state == State.NEEDS_ACTION:
        return timedelta(seconds=5 if age < FREQUENT_CHECKS_FOR else 60)
    if operation.kind == Kind.AUTHORIZE and age < IN_DOUBT_TOO_LONG:
        return timedelta(seconds=2 if age < MAX_PAYER_WAIT else 10)
    if operation.kind == Kind.REFUND and state == State.PENDING:
        return doubled_delay(tries // 4, 600)
    if operation.kind == Kind.VOID:
        return doubled_delay(tries // 4, 60)
    # The delays for a capture are short, because a hold must be released soon after its deadline.
    return doubled_delay(tries - 1, 10 if operation.kind == Kind.CAPTURE else 60)


def doubled_delay(times: int, longest: int) -> timedelta:
    """Return one second doubled `times` times, but at most `longest` seconds."""
    return timedelta(seconds=min(2.0 ** min(times, 10), longest))


def make_due(operation: Operation) -> None:
    """Make an operation due now, if it has not ended and no process has leased it."""
    rows = Operation.objects.filter(pk=operation.pk, ended_at=None, lease_token=None)
    rows.update(next_attempt_at=clock.now())


def make_due_by(operation: Operation, moment: datetime) -> None:
    """Make an operation due no later than `moment`, if it has not ended and no process has leased it."""
    rows = Operation.objects.filter(
        pk=operation.pk, ended_at=None, lease_token=None, next_attempt_at__gt=moment
    )
    rows.update(next_attempt_at=moment)


def oldest_due_at(now: datetime) -> datetime | None:
    """Return the due time of the operation that has been due for the longest time, or None.

    The pump cannot process a planned operation that waits for another operation on the same payment. Such operations
    are excluded.
    """
    ahead = Operation.objects.filter(payment=OuterRef("payment"), ended_at=None).filter(
        Q(is_open=True) & ~Q(kind=Kind.REFUND)
        | Q(state=State.PLANNED, pk__lt=OuterRef("pk"), next_attempt_at__lte=now)
    )
    rows = Operation.objects.filter(state__in=Operation.NOT_ENDED, next_attempt_at__lte=now)
    rows = rows.exclude(Exists(ahead), state=State.PLANNED).order_by("next_attempt_at")
    return rows.values_list("next_attempt_at", flat=True).first()


def due_operations_of(checkout_uuid: UUID) -> list[UUID]:
    """Return the ids of a checkout's due operations, earliest due time first."""
    rows = Operation.objects.filter(payment__checkout_uuid=checkout_uuid, state__in=Operation.NOT_ENDED)
    late = rows.filter(next_attempt_at__lte=clock.now()).order_by("next_attempt_at", "pk")
    return list(late.values_list("pk", flat=True))


def has_leased_operation(checkout_uuid: UUID) -> bool:
    """Return whether a process leases an operation of a checkout that has not ended (see `is_leased`)."""
    rows = Operation.objects.filter(payment__checkout_uuid=checkout_uuid, state__in=Operation.NOT_ENDED)
    return rows.filter(lease_token__isnull=False, next_attempt_at__gt=clock.now()).exists()


def claim(
    *, limit: int, operation_uuid: UUID | None = None, kinds: Sequence[Kind] = tuple(Kind)
) -> Sequence[Operation]:
    """Lease up to `limit` due operations in a separate short transaction, and return them.

    A planned operation is leased only if no earlier planned operation on its payment is due, and if no other operation
    on the payment is open. There is one exception: an open refund does not block other refunds to the card. When a
    planned operation is leased, its state becomes `in_flight`, and it is due again when the lease expires.

    `operation_uuid` and `kinds` restrict which operations are leased. If the database was restored and is not
    repaired yet, no operation is leased.
    """
    if restore_guard.is_closed():
        return []
    statement = statements.CLAIM_OPERATION_IF_DUE if operation_uuid else statements.CLAIM_DUE_OPERATIONS
    parameters = {
        "limit": limit,
        "operation": operation_uuid,
        "kinds": [kind.value for kind in kinds],
        "lease": LEASE.total_seconds(),
    }
    claimed = _lease_operations(statement, parameters)
    if not claimed:
        return []  # usually no operation is due, and no further query is needed
    rows = Operation.objects.filter(pk__in=claimed.keys()).select_related("payment").order_by("pk")
    # If this process was suspended for a while, other processes might have leased some of these operations.
    return [row for row in rows if row.lease_token == claimed[row.pk]]


def _lease_operations(statement: str, parameters: dict[str, Any]) -> dict[UUID, UUID]:
    """Return the lease token of each operation that was leased, by the operation's id."""
    try:
        with transaction.atomic(durable=True):
            return dict(queries.rows(statement, parameters))
    except IntegrityError:
        # Another pump has opened an operation on one of these payments. The leases are rolled back, so all these
        # operations are still due.
        return {}
