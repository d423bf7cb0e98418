"""Planned operations, which the pump performs: writing them, trying again, renewing their key, withdrawing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from uuid_utils.compat import uuid7

from config.lib.process import tracing
from payments import open_operations
from payments.cause import Cause
from payments.models import Operation, Posting
from payments.outside import bookings

Kind: TypeAlias = Operation.Kind
State: TypeAlias = Operation.State


@dataclass(frozen=True)
class Details:
    """What a planned operation is for: a refund part has `refund_uuid`, a reimbursement `share_uuid`.

    `amount` is in minor units, None for the payment's own. The operation is due from `at` on (None: now), and its
    time in doubt is counted from then.
    """

    amount: int | None = None
    account: Posting.Account = Posting.Account.MERCHANT
    refund_uuid: UUID | None = None
    share_uuid: UUID | None = None
    at: datetime | None = None

    @property
    def purpose(self) -> Operation.Purpose:
        if self.share_uuid is not None:
            return Operation.Purpose.REIMBURSEMENT
        return Operation.Purpose.PAYMENT if self.refund_uuid is None else Operation.Purpose.REFUND_PART


WHOLE = Details()


def plan(
    payments: Sequence[UUID], kind: Kind, *, now: datetime, cause: Cause, details: Details = WHOLE
) -> None:
    """Plan an operation on each payment: the pump performs it, and repeats it until the provider confirms."""
    with connection.cursor() as cursor:
        cursor.execute(
            _PLAN,
            {
                "ids": [uuid7() for _ in payments],
                "payments": list(payments),
                "kind": kind.value,
                "purpose": details.purpose.value,
                "amount": details.amount,
                "account": details.account.value,
                "refund_uuid": details.refund_uuid,
                "share_uuid": details.share_uuid,
                "due_at": details.at or now,
                "actor": cause.actor,
                "request_id": cause.request_id,
                "traceparent": tracing.current(),
            },
        )


_PLAN = """
INSERT INTO payments_operation (id, payment_id, kind, purpose, amount, state, reference, reason, action_url, account,
    refund_uuid, share_uuid, attempts, next_attempt_at, actor, request_id, traceparent, created_at)
SELECT planned.id, payment.id, %(kind)s, %(purpose)s, coalesce(%(amount)s, payment.amount), 'planned', '', '', '',
    %(account)s, %(refund_uuid)s, %(share_uuid)s, 0, %(due_at)s, %(actor)s, %(request_id)s, %(traceparent)s, %(due_at)s
FROM unnest(%(ids)s::uuid[], %(payments)s::uuid[]) AS planned (id, payment_id)
JOIN payments_payment payment ON payment.id = planned.payment_id
"""


def renew(operation: Operation, *, now: datetime, at: datetime | None = None) -> None:
    """Replace an operation that never reached the provider by one under a new key, due from `at` on.

    The new one takes the old one's place at once, so that nothing else begins on the payment. Each further key
    waits twice as long. Must be called with the checkout locked.
    """
    times = keys_before(operation).count()
    later = now + timedelta(seconds=min(2**times, 3600)) if times else now
    must_wait = open_operations.open_beside(operation)
    leave_key(operation, now=now)
    copied = (
        "payment_id",
        "kind",
        "purpose",
        "amount",
        "account",
        "refund_uuid",
        "share_uuid",
        "actor",
        "request_id",
        "traceparent",
    )
    Operation.objects.create(
        **{name: getattr(operation, name) for name in copied},
        state=State.PLANNED if must_wait else State.IN_FLIGHT,
        next_attempt_at=max(at or now, later),
        created_at=now,
    )


def leave_key(operation: Operation, *, now: datetime) -> None:
    """End an operation that never reached the provider, in whose place there is one under a new key."""
    Operation.objects.filter(pk=operation.pk, ended_at=None).update(
        state=State.FAILED, reason="new_key", ended_at=now, next_attempt_at=None, lease_token=None
    )


def keys_before(operation: Operation) -> QuerySet[Operation]:
    """Return the operations that this one has replaced, each under an earlier key."""
    same = {name: getattr(operation, name) for name in ("payment_id", "kind", "refund_uuid", "share_uuid")}
    return Operation.objects.filter(**same, reason="new_key").exclude(pk=operation.pk)


def plan_again(operation: Operation, *, at: datetime, cause: Cause) -> None:
    """Plan an operation that has failed once more, due from `at` on; a refund of no more than is left on its card.

    A refund that came back is planned at the expense of `returned`, since its own account has paid for the first.
    """
    account, amount = Posting.Account(operation.account), operation.amount
    if operation.kind == Kind.REFUND:  # somebody may have given some of it back in the provider's dashboard
        amount = min(amount, bookings.left(operation.payment))
    if amount <= 0:
        return
    details = Details(
        amount=amount,
        account=Posting.Account.RETURNED if operation.returned_as else account,
        refund_uuid=operation.refund_uuid,
        share_uuid=operation.share_uuid,
        at=at,
    )
    plan([operation.payment_id], Kind(operation.kind), now=at, cause=cause, details=details)


def withdraw(share_uuid: UUID, *, now: datetime) -> bool:
    """Withdraw the planned reimbursement of a share; return whether none is under way.

    Must be called with the checkout locked. If a process has claimed one meanwhile, the caller waits for its end.
    """
    return withdraw_planned(Operation.objects.filter(share_uuid=share_uuid), now=now)


def withdraw_planned(rows: QuerySet[Operation], *, now: datetime) -> bool:
    """Withdraw those of the operations that are planned; return whether none is under way. As `withdraw`."""
    under_way = rows.filter(ended_at=None)
    under_way.filter(state=State.PLANNED).update(state=State.FAILED, reason="withdrawn", ended_at=now)
    return not under_way.exists()


def parts_like(part: Operation) -> QuerySet[Operation]:
    """Return every attempt at the same refund part or reimbursement, this one among them."""
    return Operation.objects.filter(
        payment=part.payment_id, kind=Kind.REFUND, refund_uuid=part.refund_uuid, share_uuid=part.share_uuid
    )
