"""Planning: operations that the pump performs later, once more, under a new key, or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from uuid_utils.compat import uuid7

from payments import open_operations
from payments.cause import Cause
from payments.models import Operation, Posting

Kind: TypeAlias = Operation.Kind
State: TypeAlias = Operation.State


@dataclass(frozen=True)
class Details:
    """What a planned operation is for: `refund_uuid` of a refund part, `share_uuid` of a reimbursement, else a payment.

    `amount` in minor units, None for the payment's own.

    Before `at` it is not begun, and how long it is in doubt is counted from then on.
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
    """Write an operation on each payment that the pump performs, and repeats until the provider confirms."""
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
            },
        )


_PLAN = """
INSERT INTO payments_operation (id, payment_id, kind, purpose, amount, state, reference, reason, action_url, account,
    refund_uuid, share_uuid, attempts, next_attempt_at, actor, request_id, created_at)
SELECT planned.id, payment.id, %(kind)s, %(purpose)s, coalesce(%(amount)s, payment.amount), 'planned', '', '', '',
    %(account)s, %(refund_uuid)s, %(share_uuid)s, 0, %(due_at)s, %(actor)s, %(request_id)s, %(due_at)s
FROM unnest(%(ids)s::uuid[], %(payments)s::uuid[]) AS planned (id, payment_id)
JOIN payments_payment payment ON payment.id = planned.payment_id
"""


def renew(operation: Operation, *, now: datetime, at: datetime | None = None) -> None:
    """Let an operation that never reached the provider be sent anew, under a new key, from `at` on.

    It takes the old one's place at once: nothing else may begin on its payment. Each further key waits for twice
    as long. Belongs under the checkout's lock.
    """
    times = keys_before(operation).count()
    later = now + timedelta(seconds=min(2**times, 3600)) if times else now
    stands_behind = open_operations.open_beside(operation)
    Operation.objects.filter(pk=operation.pk, ended_at=None).update(
        state=State.FAILED, reason="new_key", ended_at=now, next_attempt_at=None, lease_token=None
    )
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
    )
    Operation.objects.create(
        **{name: getattr(operation, name) for name in copied},
        state=State.PLANNED if stands_behind else State.IN_FLIGHT,
        next_attempt_at=max(at or now, later),
        created_at=now,
    )


def keys_before(operation: Operation) -> QuerySet[Operation]:
    """Return what has wanted the same as an operation, under keys that it was renewed from."""
    same = {name: getattr(operation, name) for name in ("payment_id", "kind", "refund_uuid", "share_uuid")}
    return Operation.objects.filter(**same, reason="new_key").exclude(pk=operation.pk)


def plan_again(operation: Operation, *, at: datetime, cause: Cause) -> None:
    """Plan what an operation wanted, and did not reach, once more, from `at` on.

    Of a refund that came back it takes what came back: the first time was at the expense of its own account.
    """
    account = Posting.Account(operation.account)
    details = Details(
        amount=operation.amount,
        account=Posting.Account.RETURNED if operation.returned_as else account,
        refund_uuid=operation.refund_uuid,
        share_uuid=operation.share_uuid,
        at=at,
    )
    plan([operation.payment_id], Kind(operation.kind), now=at, cause=cause, details=details)


def withdraw(share_uuid: UUID, *, now: datetime) -> bool:
    """End what is planned for a share and was never sent; return whether nothing more is under way for it.

    Belongs under the checkout's lock: who has claimed it meanwhile is waited for by the caller.
    """
    return withdraw_planned(Operation.objects.filter(share_uuid=share_uuid), now=now)


def withdraw_planned(rows: QuerySet[Operation], *, now: datetime) -> bool:
    """End those that are planned and were never sent; return whether none is under way. As `withdraw`."""
    under_way = rows.filter(ended_at=None)
    under_way.filter(state=State.PLANNED).update(state=State.FAILED, reason="withdrawn", ended_at=now)
    return not under_way.exists()


def parts_like(part: Operation) -> QuerySet[Operation]:
    """Return whatever was to give back the same as this refund of a payment: tried before, or since."""
    return Operation.objects.filter(
        payment=part.payment_id, kind=Kind.REFUND, refund_uuid=part.refund_uuid, share_uuid=part.share_uuid
    )
