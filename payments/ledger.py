"""The ledger: each movement of money is posted as lines that sum to zero (rule money.balanced).

The database checks that, and that no line is changed: triggers in migrations/0002_guards.py.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias
from uuid import UUID

from uuid_utils.compat import uuid7

from payments.models import Operation, Payment, Posting

Account: TypeAlias = Posting.Account


def lines(operation: Operation, state: str) -> dict[str, Any]:
    """Return the parameters of LINES for an operation that has come to `state`.

    A card that was debited favours the operation's account, one that was credited is at its expense; a constraint
    refuses it a second time. Whatever else an operation comes to posts nothing.
    """
    sign = SIGNS.get(operation.kind, 0) if state == Operation.State.SUCCEEDED else 0
    return {"provider_line": uuid7(), "account_line": uuid7(), "incoming": sign * operation.amount}


SIGNS = {Operation.Kind.CAPTURE.value: 1, Operation.Kind.REFUND.value: -1}
# Posts for the operation in `recorded`, a WITH before it, that the provider owes us `incoming` more and we the account.
LINES = """
INSERT INTO payments_posting (id, transaction, checkout_uuid, merchant_id, account, amount, currency, created_at)
SELECT line.id, recorded.id, p.checkout_uuid, p.merchant_id, line.account, line.amount, p.currency, clock_timestamp()
FROM recorded JOIN payments_payment p ON p.id = recorded.payment_id, LATERAL (
    VALUES (%(provider_line)s::uuid, 'provider', %(incoming)s::bigint),
        (%(account_line)s::uuid, recorded.account, -%(incoming)s::bigint)
) AS line (id, account, amount)
WHERE %(incoming)s::bigint <> 0
"""


def post(transaction: UUID, payment: Payment, amounts: Mapping[Account, int]) -> None:
    """Post a movement of a payment's money that no operation of ours made, in minor units by account.

    A constraint refuses a second posting of the same transaction.
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
        if amount
    )
