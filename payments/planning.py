"""Plans, repeats and withdraws operations, and gives them new keys. Only this module inserts operations."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from django.db.models import F, OuterRef, QuerySet, Subquery, Sum, UUIDField, Value
from django.db.models.functions import Coalesce, Greatest
from uuid_utils.compat import uuid7

from config.lib.database import queries
from config.lib.process import tracing
from payments import operation_queue, provider, statements
from payments.cause import PUMP, Cause
from payments.discrepancies import kinds
from payments.models import Discrepancy, Operation

Kind: TypeAlias = Operation.Kind
State: TypeAlias = Operation.State
# `last_sent_at` is the end of the lease of the last call. If an operation was sent once, the time from `first_sent_at`
# to `last_sent_at` is the lease plus a few microseconds. If it was sent twice, this time is longer. The second call
# waits for the answer to the first call, or for the end of the first lease.
SINGLE_CALL_SPAN = operation_queue.LEASE + timedelta(milliseconds=10)
KEY_MARGIN = timedelta(hours=1)  # margin for clock differences and slow calls
REPLACED = "new_key"  # the reason of an operation that was replaced under a new key
WITHDRAWN = "withdrawn"
# The discrepancies about an operation without an outcome. They follow the operation to its new key.
DOUBTS = (kinds.IN_DOUBT_FOR_A_DAY.name, kinds.CAPTURE_PENDING_TOO_LONG.name)


class OperationDetails(NamedTuple):
    """The purpose and the amount of a planned operation.

    A refund part has `refund_uuid`, and a reimbursement has `share_uuid`. `amount` is in minor units, or None for the
    whole amount of the payment. The operation becomes due at `at`, or now if `at` is None, and its age is counted
    from this time. `resends` is the returned refund that the operation replaces.
    """

    amount: int | None = None
    refund_uuid: UUID | None = None
    share_uuid: UUID | None = None
    at: datetime | None = None
    resends: UUID | None = None

    @property
    def purpose(self) -> Operation.Purpose:
        if self.share_uuid is not None:
            return Operation.Purpose.REIMBURSEMENT
        return Operation.Purpose.PAYMENT if self.refund_uuid is None else Operation.Purpose.REFUND_PART


WHOLE = OperationDetails()


def plan_operations(
    payments: Sequence[UUID], kind: Kind, *, now: datetime, cause: Cause, details: OperationDetails = WHOLE
) -> None:
    """Plan an operation on each payment. The pump performs and repeats it until the provider confirms it."""
    due_at = details.at or now
    planned = Operation(
        kind=kind,
        purpose=details.purpose,
        state=State.PLANNED,
        refund_uuid=details.refund_uuid,
        share_uuid=details.share_uuid,
        resends_id=details.resends,
        next_attempt_at=due_at,
        actor=cause.actor,
        request_id=cause.request_id,
        traceparent=tracing.current_traceparent(),
        created_at=due_at,
    )
    _insert_operations(planned, [uuid7() for _ in payments], payments, amount=details.amount)


def insert_operation(operation: Operation) -> None:
    """Write a new operation in any state."""
    _insert_operations(operation, [operation.pk], [operation.payment_id], amount=operation.amount)
    operation._state.adding, operation._state.db = False, DEFAULT_DB_ALIAS


def _insert_operations(
    template: Operation, ids: Sequence[UUID], payments: Sequence[UUID], *, amount: int | None
) -> None:
    parameters: dict[str, Any] = {name: getattr(template, name) for name in statements.OPERATION_COLUMNS}
    parameters |= {"amount": amount, "ids": list(ids), "payments": list(payments)}
    queries.execute(statements.INSERT_OPERATIONS, parameters)


def longest_key_use() -> timedelta:
    """Return how long a key can be used again, counted from its first use.

    After this time, the provider might no longer recognize the key.
    """
    return provider.current_provider().key_life - KEY_MARGIN


def calls_end_at(operation: Operation) -> datetime | None:
    """Return the time after which a call with the operation's key can no longer be carried out.

    Return None if no call was sent.
    """
    last = operation.last_sent_at
    return None if last is None else last + provider.current_provider().key_life + KEY_MARGIN


def calls_have_ended(operation: Operation, now: datetime) -> bool:
    """Return whether calls with the operation's key can no longer be carried out."""
    ended_at = calls_end_at(operation)
    return ended_at is None or ended_at <= now


def last_call_ends_at(operation: Operation) -> datetime | None:
    """Return the time after which a call with the operation's key or with an earlier key can no longer be carried out.

    Return None if no call was sent.
    """
    ends = [calls_end_at(row) for row in (operation, *replaced_operations(operation))]
    return max(filter(None, ends), default=None)


def was_sent_again(operation: Operation) -> bool:
    """Return whether an operation was sent more than once."""
    first, last = operation.first_sent_at, operation.last_sent_at
    return first is not None and last is not None and last - first > SINGLE_CALL_SPAN


def assume_sent(since: datetime, now: datetime) -> None:
    """Assume that each operation that has not ended was sent during the whole time from `since` to `now`.

    A restored database has no record of the calls that were sent in this period.
    """
    first, last = Coalesce("first_sent_at", since), Greatest("last_sent_at", now)
    Operation.objects.filter(ended_at=None).update(first_sent_at=first, last_sent_at=last)


def plan_release(payments: Sequence[UUID], *, now: datetime) -> bool:
    """Plan a void of each payment, unless it already has a void that succeeded or can still succeed.

    Return whether a void was planned.
    """
    held = sorted(set(payments) - released_payments(payments))
    if held:
        plan_operations(held, Kind.VOID, now=now, cause=PUMP)
    return bool(held)


def released_payments(payments: Sequence[UUID]) -> set[UUID]:
    """Return the payments that already have a void that succeeded or can still succeed."""
    voids = Operation.objects.filter(payment__in=payments, kind=Kind.VOID).exclude(state=State.FAILED)
    return set(voids.values_list("payment", flat=True))


def replace_under_new_key(operation: Operation, *, now: datetime, at: datetime | None = None) -> None:
    """Replace an operation that never reached the provider by one with a new key, due from `at`.

    The new operation is open at once, so that no other operation begins on the payment. There is one exception: a new
    refund is only planned. The amount owed to the card might have changed, so the caller must then settle the order.
    Each further replacement waits twice as long as the previous one, but at most ten minutes. Must be called with the
    checkout locked.
    """
    times = replaced_operations(operation).count()
    later = now + operation_queue.doubled_delay(times, 600) if times else now
    end_for_new_key(operation, now=now)
    copied = (
        *("payment_id", "kind", "purpose", "amount", "refund_uuid", "share_uuid", "resends_id"),
        *("actor", "request_id", "traceparent"),
    )
    renewed = Operation(
        **{name: getattr(operation, name) for name in copied},
        state=State.PLANNED if operation.kind == Kind.REFUND else State.IN_FLIGHT,
        next_attempt_at=max(at or now, later),
        created_at=now,
    )
    insert_operation(renewed)
    doubts = Discrepancy.objects.filter(operation=operation, kind__in=DOUBTS, closed_at=None)
    doubts.update(operation=renewed)


def end_for_new_key(operation: Operation, *, now: datetime) -> None:
    """End an operation that never reached the provider. The caller replaces it by one with a new key."""
    Operation.objects.filter(pk=operation.pk, ended_at=None).update(
        state=State.FAILED, reason=REPLACED, ended_at=now, next_attempt_at=None, lease_token=None
    )


def replaced_operations(operation: Operation) -> QuerySet[Operation]:
    """Return a query for the operations with earlier keys that this operation has replaced."""
    same_fields = {
        name: getattr(operation, name) for name in ("payment_id", "kind", "refund_uuid", "share_uuid")
    }
    return Operation.objects.filter(**same_fields, reason=REPLACED).exclude(pk=operation.pk)


def was_replaced(operation: Operation) -> bool:
    """Return whether the operation never reached the provider and was replaced under a new key.

    Its state is then `failed`, but another operation with the same purpose continues.
    """
    return operation.state == State.FAILED and operation.reason == REPLACED


def with_first_sending(rows: QuerySet[Operation]) -> QuerySet[Any]:
    """Add `first_created_at` and `all_attempts` to operations: their start and their calls under all keys.

    They count from the first of the operations that the row replaced under new keys, so that a new key does not hide
    how long an outcome has been unknown. An earlier operation that ended with an outcome does not count.
    """
    part = ("refund_uuid", "share_uuid", "payment_id")
    before = Operation.objects.alias(part=Coalesce(*part, output_field=UUIDField())).filter(
        payment=OuterRef("payment"),
        kind=OuterRef("kind"),
        part=Coalesce(*map(OuterRef, part), output_field=UUIDField()),
        pk__lt=OuterRef("pk"),
    )
    with_outcome = before.filter(ended_at__isnull=False).exclude(reason__in=[REPLACED, WITHDRAWN])
    replaced = before.filter(reason=REPLACED, pk__gt=OuterRef("last_outcome"))
    calls = replaced.order_by().values("kind").annotate(sum=Sum("attempts")).values("sum")
    no_outcome = Value(UUID(int=0), output_field=UUIDField())
    chained = rows.alias(
        last_outcome=Coalesce(Subquery(with_outcome.order_by("-pk").values("pk")[:1]), no_outcome)
    )
    return chained.annotate(
        first_created_at=Coalesce(Subquery(replaced.order_by("pk").values("created_at")[:1]), "created_at"),
        all_attempts=F("attempts") + Coalesce(Subquery(calls), 0),
    )


def plan_void_again(refused: Operation, *, at: datetime, cause: Cause) -> None:
    """Plan another void in place of a refused one, due from `at`."""
    plan_operations([refused.payment_id], Kind.VOID, now=at, cause=cause, details=OperationDetails(at=at))


def withdraw_planned(rows: QuerySet[Operation], *, now: datetime) -> None:
    """Withdraw the planned operations among `rows`. Must be called with the checkout locked."""
    rows.filter(state=State.PLANNED, ended_at=None).update(
        state=State.FAILED, reason=WITHDRAWN, ended_at=now, next_attempt_at=None
    )


def attempts_at_same_part(part: Operation) -> QuerySet[Operation]:
    """Return all attempts to make the same refund part or reimbursement, including `part` itself."""
    return Operation.objects.filter(
        payment=part.payment_id, kind=Kind.REFUND, refund_uuid=part.refund_uuid, share_uuid=part.share_uuid
    )
