"""The ledger: each movement of money is posted as lines that sum to zero (rule money.balanced).

The database checks that, and that no line is changed: triggers in migrations/0002_guards.py.
"""

from collections.abc import Mapping
from typing import TypeAlias
from uuid import UUID

from django.db import connection
from uuid_utils.compat import uuid7

from payments.models import Operation, Payment, Posting

Account: TypeAlias = Posting.Account


def post_capture(operation: Operation) -> None:
    """Post that a card was debited in favour of the operation's account."""
    _post(operation, operation.amount)


def post_refund(operation: Operation) -> None:
    """Post that a card was credited at the expense of the operation's account."""
    _post(operation, -operation.amount)


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


def _post(operation: Operation, incoming: int) -> None:
    """Post that the provider owes us `incoming` more, and we the account; a constraint refuses it a second time."""
    with connection.cursor() as cursor:
        cursor.execute(
            _POST,
            {
                "transaction": operation.pk,
                "ids": [uuid7(), uuid7()],
                "accounts": [Account.PROVIDER.value, operation.account],
                "amounts": [incoming, -incoming],
            },
        )


_POST = """
INSERT INTO payments_posting (id, transaction, checkout_uuid, merchant_id, account, amount, currency, created_at)
SELECT line.id, o.id, p.checkout_uuid, p.merchant_id, line.account, line.amount, p.currency, clock_timestamp()
FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id,
    unnest(%(ids)s::uuid[], %(accounts)s::text[], %(amounts)s::bigint[]) AS line (id, account, amount)
WHERE o.id = %(transaction)s
"""
