"""Writes lost payments again after a restore, with the ids that the provider has stored.

Later, `sync` records the movements of their money.
"""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from payments import open_operations, operations, planning
from payments.models import FormerAccount, Merchant, Operation, Payment
from payments.provider import PaymentRecord, Verdict

Kind, State = Operation.Kind, Operation.State


def write_payment(record: PaymentRecord) -> bool:
    """Write a lost payment for an order or a share again. Return False if it does not match the order.

    The merchant, the account at the provider, the amount and the currency must match. If the order or share already has
    a current card, the payment is written as given up. The books show only later which card was captured.
    """
    checkout_uuid = _checkout_of(record.subject)
    if checkout_uuid is None:
        return False
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(checkout_uuid), clock.now()
        share = PaymentRequest.every.filter(checkout=checkout, pk=record.subject or checkout.pk).first()
        if share is not None:
            _restore_amount(checkout, share, record.amount)
        subject = share or checkout
        expected = (checkout.merchant_id, subject.amount, checkout.currency)
        if expected != (record.account, record.amount, record.currency) or record.place not in _accounts_of(
            checkout.merchant
        ):
            return False
        _write_payment(checkout, share, record, now)
    return True


def _restore_amount(checkout: Checkout, share: PaymentRequest, amount: int) -> None:
    """Write the amount that an unpaid share had before the restore, if this amount fits the order.

    The lead and the mates can change the amount of an unpaid share, and the restore might have lost such a change. If
    the share had units of the order lines, they are removed, because it is unknown for which units the amount pays.
    """
    others = PaymentRequest.objects.filter(checkout=checkout).exclude(pk=share.pk)
    available = checkout.amount - sum(others.values_list("amount", flat=True))
    if share.payment_id is None and 0 < amount <= available and amount != share.amount:
        share.amount, share.units = amount, []
        share.save(update_fields=["amount", "units"])


def _checkout_of(subject: UUID | None) -> UUID | None:
    if subject is None:
        return None
    share = PaymentRequest.every.filter(pk=subject).only("checkout_id").first()
    order = share.checkout_id if share else subject
    return order if Checkout.objects.filter(pk=order).exists() else None


def _accounts_of(merchant: Merchant) -> set[str]:
    """Return the current and former accounts of a merchant at the provider.

    A payment in another account is not trusted, because the owner of that account can store any ids in the payment.
    """
    former = FormerAccount.objects.filter(merchant=merchant).values_list("provider_account", flat=True)
    return {merchant.provider_account, *former}


def _write_payment(
    checkout: Checkout, share: PaymentRequest | None, record: PaymentRecord, now: datetime
) -> None:
    subject = share or checkout
    is_second = open_operations.live_payment(subject.pk) is not None
    Payment.objects.create(
        id=record.payment,
        merchant_id=checkout.merchant_id,
        kind=Payment.Kind.SHARE if share else Payment.Kind.ORDER,
        subject=subject.pk,
        checkout_uuid=checkout.pk,
        amount=record.amount,
        currency=record.currency,
        provider_reference=record.reference,
        provider_account=record.place,
        card_brand=record.card.brand if record.card else "",
        card_last4=record.card.last4 if record.card else "",
        card_fingerprint=record.card.fingerprint if record.card else "",
        abandoned_at=now if is_second else None,
    )


def end_replaced_refunds(payment_uuid: UUID) -> int:
    """End each open refund that was sent under a new key after the backup; return how many were ended.

    The database has only the old key. If the refund were sent again under this key, the money would be refunded twice.
    A refund is ended only if the provider vouches that the call under the old key never arrived.
    """
    count = 0
    rows = Operation.objects.filter(payment=payment_uuid, kind=Kind.REFUND, state__in=Operation.OPEN)
    for operation in rows.select_related("payment"):
        later = planning.attempts_at_same_part(operation).filter(state__in=[State.SUCCEEDED, State.PENDING])
        if not later.exclude(pk=operation.pk).filter(amount=operation.amount).exists():
            continue
        outcome = operations.look_up(operation)
        if outcome.verdict == Verdict.NOT_FOUND and outcome.is_vouched:
            with transaction.atomic(durable=True):
                Checkout.objects.locked(operation.payment.checkout_uuid)
                planning.end_for_new_key(operation, now=clock.now())
            count += 1
    return count
