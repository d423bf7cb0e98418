"""Posts each movement and each booking to the ledger, as lines whose sum is zero (rule money.balanced).

Database triggers check the sums, and they refuse changes to the lines (sql/ledger.sql, sql/append_only.sql).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from uuid_utils.compat import uuid7

from payments.models import Dispute, Movement, Operation, Payment, Posting

Account: TypeAlias = Posting.Account

MOVEMENT_KINDS = {
    Operation.Kind.CAPTURE.value: Movement.Kind.CAPTURED,
    Operation.Kind.REFUND.value: Movement.Kind.REFUNDED,
}


def bearer_account(operation: Operation) -> Account:
    """Return the account to which a capture is credited, or from which a refund is paid.

    The capture of a mate's share is credited to the lead's account, and the reimbursement to the lead is paid from
    it. Every other capture or refund uses the merchant's account.
    """
    if operation.kind == Operation.Kind.CAPTURE:
        is_leads = operation.payment.kind == Payment.Kind.SHARE
    else:
        first = operation.resends or operation
        is_leads = first.purpose == Operation.Purpose.REIMBURSEMENT
    return Account.LEAD if is_leads else Account.MERCHANT


def posting_parameters(operation: Operation, state: str, reference: str) -> dict[str, Any]:
    """Return the parameters with which RECORD_OUTCOME posts the movement of an operation in its new `state`.

    An operation that does not move money has no posting. `reference` is the provider's id of the movement.
    """
    kind = MOVEMENT_KINDS.get(operation.kind) if state == Operation.State.SUCCEEDED else None
    amount = 0 if kind is None else operation.amount if kind in Movement.INCOMING else -operation.amount
    return {
        "movement": uuid7(),
        "moved_as": kind.value if kind else "",
        "fact": reference or str(operation.pk),
        "bearer": bearer_account(operation).value if kind else "",
        "provider_line": uuid7(),
        "bearer_line": uuid7(),
        "incoming": amount,
    }


def record_movement(
    payment: Payment,
    kind: Movement.Kind,
    amount: int,
    reference: str,
    cause: Operation | Dispute,
    *,
    at: datetime,
    now: datetime,
) -> None:
    """Record and post a movement that is not the outcome of an operation.

    Such a movement is a returned refund, or a line that a dispute has added to the provider's balance.

    `amount` is positive, in minor units. A constraint refuses a movement that is already recorded. Must be called
    with the checkout locked.
    """
    operation, dispute = (cause, None) if isinstance(cause, Operation) else (None, cause)
    moved = amount if kind in Movement.INCOMING else -amount
    movement = Movement.objects.create(
        payment=payment,
        checkout_uuid=payment.checkout_uuid,
        kind=kind,
        amount=moved,
        reference=reference,
        operation=operation,
        dispute=dispute,
        bearer=bearer_account(operation) if operation else Account.MERCHANT,
        occurred_at=at,
        recorded_at=now,
    )
    post(movement.pk, payment, {Account.PROVIDER: moved, Account(movement.bearer): -moved})


def post(transaction: UUID, payment: Payment, amounts: Mapping[Account, int]) -> None:
    """Write the postings for a movement or a booking, whose id is `transaction`.

    `amounts` are in minor units, by account. A constraint refuses to post the same transaction twice.
    """
    Posting.objects.bulk_create(
        Posting(
            transaction=transaction,
            checkout_uuid=payment.checkout_uuid,
            merchant_id=payment.merchant_id,
            account=account,
            amount=amount,
            currency=payment.currency,
        )
        for account, amount in amounts.items()
    )
