"""The ledger: every amount that moved, twice, summing to zero."""

from uuid import UUID

from django.db.models import Sum

from payments.models import Operation, Posting

Account = Posting.Account


def post_capture(operation: Operation, account: Account = Account.MERCHANT) -> None:
    """Record that a card was debited in favour of `account`."""
    _post(operation, account, operation.amount)


def post_refund(operation: Operation, account: Account = Account.MERCHANT) -> None:
    """Record that a card was credited at the expense of `account`."""
    _post(operation, account, -operation.amount)


def _post(operation: Operation, account: Account, incoming: int) -> None:
    """The provider owes us what came in, we owe the account the same; repeated, the constraint ignores it."""
    payment = operation.payment
    lines = [(Account.PROVIDER, incoming), (account, -incoming)]
    Posting.objects.bulk_create(
        Posting(
            transaction=operation.pk,
            checkout_uuid=payment.checkout_uuid,
            merchant_id=payment.merchant_id,
            account=name,
            amount=amount,
            currency=payment.currency,
        )
        for name, amount in lines
    )


def balances(checkout_uuid: UUID) -> dict[str, int]:
    """Return what stands on each account of a checkout, in minor units."""
    rows = Posting.objects.filter(checkout_uuid=checkout_uuid).values_list("account")
    return dict(rows.annotate(balance=Sum("amount")))
