"""The ledger: each movement and each booking is posted as lines that sum to zero (rule money.balanced).

Database triggers check the sums and refuse changes of lines (sql/ledger.sql, sql/append_only.sql).
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
    """Return the account that a capture is credited to, or that a refund is paid from.

    The capture of a mate's share is credited to the lead, and its reimbursement to the lead is paid from the
    same account. Every other capture or refund uses the merchant's account.
    """
    if operation.kind == Operation.Kind.CAPTURE:
        is_leads = operation.payment.kind == Payment.Kind.SHARE
    else:
        first = operation.resends or operation
        is_leads = first.purpose == Operation.Purpose.REIMBURSEMENT
    return Account.LEAD if is_leads else Account.MERCHANT


def posting_parameters(operation: Operation, state: str, reference: str) -> dict[str, Any]:
    """Return the parameters of RECORD_OUTCOME that post the movement of an operation in its new `state`.

    An operation that moves no money has no posting. `reference` is the provider's id of the movement.
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
    """Record and post a movement that is not an operation's outcome.

    The movement is a returned refund, or a line that a dispute has added to the provider's balance.

    `amount` is positive, in minor units. A constraint refuses a movement that is already recorded. Must be
    called with the checkout locked.
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
    """Write the postings of a movement or a booking, with its id as `transaction`.

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
