"""The remedy that books a refund made at the provider itself: the provider's books are read first, and decide."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from checkout import refund_parts
from checkout.models import Checkout, PaymentRequest
from checkout.outside import returned_refunds
from checkout.remedies import parts
from checkout.remedies.asking import NotAllowed
from checkout.states import ShareStatus
from config.lib import clock
from payments import discrepancies, money, planning, provider, safe_answers
from payments.cause import Cause
from payments.models import Discrepancy, Operation, Payment
from payments.outside import acts, bookings, returns
from payments.provider import ProviderUnreachable, Record, Verdict

Kind = Operation.Kind
TAKEN = (Payment.Status.CAPTURED, Payment.Status.REFUNDED)
TOLD_AS = acts.KINDS["refund"]  # the discrepancy that reports such a refund


def find(discrepancy_uuid: UUID) -> Record:
    """Return the record that a discrepancy is about, as the provider's books have it now.

    Raises NotAllowed, Discrepancy.DoesNotExist.
    """
    told = Discrepancy.objects.get(pk=discrepancy_uuid)
    if told.kind != TOLD_AS or told.closed_at is not None:
        raise NotAllowed("Only an open discrepancy about a refund that was made at the provider is booked.")
    payment = Payment.objects.filter(pk=told.facts.get("payment")).first()
    if payment is None:
        raise NotAllowed("It names no payment of ours.")
    try:
        for record in safe_answers.records(provider.current().refunds_of(payment)):
            if record.key == told.subject:
                return record
    except ProviderUnreachable as error:
        raise NotAllowed("The provider does not answer. Try again in a minute.") from error
    raise NotAllowed("The provider's books do not have it.")


def words(record: Record) -> str:
    """Return what the provider's books say, in words for an operator."""
    amount = money.display(record.amount, record.currency) if record.currency else str(record.amount)
    return f"The provider's books say: {record.kind} of {amount}, {record.verdict}."


def book_outside_refund(discrepancy_uuid: UUID, *, note: str, cause: Cause) -> UUID:
    """Book the refund that a discrepancy reports, once, and close the discrepancy.

    Returns the checkout's uuid. Raises NotAllowed, Discrepancy.DoesNotExist.
    """
    record = find(discrepancy_uuid)
    payment = Payment.objects.filter(pk=record.payment).first()
    if payment is None or record.kind != Kind.REFUND or record.verdict != Verdict.SUCCEEDED:
        raise NotAllowed(
            f"{words(record)} Only a refund of one of our payments that has succeeded is booked."
        )
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(payment.checkout_uuid), clock.now()
        told_at = Discrepancy.objects.get(pk=discrepancy_uuid).created_at
        _book(checkout, record, told_at, note=note, now=now, cause=cause)
        refund_parts.go_on(checkout, now)
        checkout.touch()
        discrepancies.close_resolved(TOLD_AS, record.key, note=note, now=now)
    return checkout.pk


def _book(
    checkout: Checkout, record: Record, told_at: datetime, *, note: str, now: datetime, cause: Cause
) -> None:
    payment = Payment.objects.get(pk=record.payment)
    if Operation.objects.filter(pk=record.key).exists():
        raise NotAllowed("It is an operation of ours.")
    left = payment.amount - bookings.given_back(payment)
    if payment.status not in TAKEN or record.currency != payment.currency or not 0 < record.amount <= left:
        raise NotAllowed(f"{words(record)} That is more than we know to have been taken from the card.")
    if PaymentRequest.objects.filter(payment=payment, status=ShareStatus.PAID).exists():
        raise NotAllowed("The lead has not got this share yet. Book it once they have.")
    part = _given_again(payment, record, told_at, now)
    try:
        returned_refunds.book_outside(checkout, record, part, note=note, now=now, cause=cause)
    except bookings.AlreadyBooked as error:
        raise NotAllowed("It was booked before.") from error


def _given_again(payment: Payment, record: Record, told_at: datetime, now: datetime) -> Operation | None:
    """Return the refund that came back and that this one gives again, None if it can give again nothing.

    It is not sent again any more. Raises NotAllowed.
    """
    owed = returns.given_again(payment.pk, told_at=told_at)
    if not owed:
        return None
    part = next((part for part in owed if part.amount == record.amount), None)
    if part is None:
        back = money.display(owed[0].amount, payment.currency)
        raise NotAllowed(
            f"{words(record)} {back} that came back is owed to this card: send it again, or settle it otherwise, first."
        )
    if not planning.withdraw_planned(planning.parts_like(part), now=now):
        raise NotAllowed(parts.UNDER_WAY)
    return part
