"""Writes lost payments and operations again, under their own ids, as the provider's books have them.

Each order is locked, and what is written takes the way of any other outcome: so states, ledger and events follow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from django.db import transaction

from checkout import outcomes, refunds
from checkout.models import Checkout, PaymentRequest
from checkout.states import ShareStatus, Status
from config.lib import clock
from payments import discrepancies, open_operations, operations, planning
from payments.cause import PUMP
from payments.models import Operation, Payment
from payments.outside import bookings
from payments.provider import Outcome, PaymentRecord, ProviderUnreachable, Record, Verdict

Kind: TypeAlias = Operation.Kind
State: TypeAlias = Operation.State
ORDER = (Kind.AUTHORIZE, Kind.CAPTURE, Kind.VOID, Kind.REFUND)
NOTE = "Its operation was lost when the database was restored."


class StillOpen(Exception):
    """An operation is open on the payment, which the pumps are to finish first."""


@dataclass
class Rebuilt:
    """How many operations were written again, and how many refunds booked as made outside."""

    operations: int = 0
    booked: int = 0


def write_payment(checkout_uuid: UUID, told: PaymentRecord) -> bool:
    """Write a lost payment of an order, or of a share of it; return whether merchant, amount and currency fit.

    Beside another card that is live for the same it is written as given up, until the books show which was captured.
    """
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(checkout_uuid), clock.now()
        share = checkout.payment_requests.filter(pk=told.subject or checkout.pk).first()
        subject = share or checkout
        asked = (checkout.merchant_id, subject.amount, checkout.currency)
        if asked != (told.account, told.amount, told.currency):
            return False
        is_second = open_operations.live_payment(subject.pk) is not None
        Payment.objects.create(
            id=told.payment,
            merchant_id=checkout.merchant_id,
            kind=Payment.Kind.SHARE if share else Payment.Kind.ORDER,
            subject=subject.pk,
            checkout_uuid=checkout.pk,
            amount=told.amount,
            currency=told.currency,
            provider_reference=told.reference,
            provider_account=told.place,
            card_brand=told.card.brand if told.card else "",
            card_last4=told.card.last4 if told.card else "",
            card_fingerprint=told.card.fingerprint if told.card else "",
            abandoned_at=now if is_second else None,
        )
    return True


def _prefer(payment: Payment, now: datetime) -> None:
    """Let a payment that was lost and captured count, rather than a card that was live for the same and was not."""
    other = open_operations.live_payment(payment.subject)
    if payment.abandoned_at is not None and not payment.operations.exists():
        if other is not None:
            open_operations.abandon(other.payment, now)
        Payment.objects.filter(pk=payment.pk).update(abandoned_at=None)
        payment.abandoned_at = None


def conclude(operation_uuid: UUID, *, is_captured: bool) -> bool:
    """Look up an operation of ours that the provider has ended, and record its outcome; return whether it has one.

    Raises ProviderUnreachable.
    """
    operation = operations.current(operation_uuid)
    outcome = operations.look_up(operation)
    if outcome.verdict == Verdict.UNKNOWN:
        raise ProviderUnreachable  # its books say more than it answers now
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(operation.payment.checkout_uuid), clock.now()
        operation = operations.current(operation_uuid)
        if operation.kind == Kind.AUTHORIZE:
            _let_go_unless(is_captured, operation.payment, now)
        outcomes.conclude(checkout, operation, outcome, now=now, lease=operation.lease_token)
        checkout.touch()
    return operation.ended_at is not None


def revive(operation_uuid: UUID) -> bool:
    """Record that a capture which counted as failed has succeeded since, by a lost one; return whether that counted."""
    of_operation = operations.current(operation_uuid)
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(of_operation.payment.checkout_uuid), clock.now()
        payment = Payment.objects.get(pk=of_operation.payment_id)
        if checkout.payment_id != payment.pk or checkout.status != Status.AUTHORIZED:
            return False
        outcomes.recover(checkout, payment, now)
    return True


def leave_old_key(payment_uuid: UUID, record: Record) -> None:
    """End an open refund in whose place the provider has this one, under a key that was lost.

    Only if it vouches that ours never arrived: as one refund of a payment is under way at a time, ours was given a new
    key then. Sent again it would give the same back twice.
    """
    rows = Operation.objects.filter(
        payment=payment_uuid, kind=Kind.REFUND, amount=record.amount, is_open=True
    )
    for operation in rows.select_related("payment"):
        outcome = operations.look_up(operation)
        if outcome.verdict == Verdict.NOT_FOUND and outcome.is_vouched:
            with transaction.atomic(durable=True):
                Checkout.objects.locked(operation.payment.checkout_uuid)
                planning.leave_key(operation, now=clock.now())


def rebuild(payment_uuid: UUID, records: Sequence[Record], *, is_captured: bool) -> Rebuilt:
    """Write the operations again that these records of one payment tell of. Raises StillOpen.

    `is_captured`: the provider's books have a capture of it. A hold that they have none of is released: its two minutes
    are over, and nobody knows who was told of it. The order may be paid anew.
    """
    done = Rebuilt()
    of_payment = Payment.objects.only("checkout_uuid").get(pk=payment_uuid)
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(of_payment.checkout_uuid), clock.now()
        payment = Payment.objects.get(pk=payment_uuid)
        if payment.operations.filter(is_open=True).exists():
            raise StillOpen
        if is_captured:
            _prefer(payment, now)
        later = []
        for record in sorted(records, key=lambda record: ORDER.index(Kind(record.kind))):
            if record.kind == Kind.REFUND and not _wanted(payment, record):
                later.append(record)
            else:
                _write(checkout, payment, record, is_captured, now)
                done.operations += 1
        for record in later:
            if _restore_refund(checkout, payment, record) and _wanted(payment, record):
                _write(checkout, payment, record, is_captured, now)
                done.operations += 1
            else:
                _book(payment, record, now)
                done.booked += 1
        checkout.touch()
    return done


def _write(checkout: Checkout, payment: Payment, record: Record, is_captured: bool, now: datetime) -> None:
    """Write an operation as if it were in flight, in place of a planned one like it, and record what came of it."""
    if record.kind == Kind.AUTHORIZE:
        _let_go_unless(is_captured, payment, now)
        _begin_share(payment)
    wanted = _wanted(payment, record)
    like = {} if wanted is None else {name: getattr(wanted, name) for name in _COPIED}
    if wanted is not None and wanted.ended_at is None:
        wanted.delete()  # it was never sent, and now never will be
    operation = Operation.objects.create(
        id=record.key,
        payment=payment,
        kind=record.kind,
        amount=record.amount,
        state=State.IN_FLIGHT,
        attempts=2,  # it was sent in time, and again as it were: its own moment is lost
        actor=PUMP.actor,
        created_at=now,
        **like,
    )
    outcomes.conclude(checkout, operation, Outcome(record.verdict), now=now)


_COPIED = ("purpose", "account", "refund_uuid", "share_uuid")


def _wanted(payment: Payment, record: Record) -> Operation | None:
    """Return the operation of ours that the record is another attempt at: planned, or failed and not made good."""
    like = payment.operations.filter(kind=record.kind, amount=record.amount).order_by("created_at", "pk")
    planned = like.filter(state=State.PLANNED).first()
    if planned is not None or record.kind != Kind.REFUND:
        return planned
    failed = like.filter(state__in=[State.FAILED, State.DECLINED]).exclude(reason="withdrawn")
    return next((row for row in failed if not _is_made_good(row)), None)


def _is_made_good(failed: Operation) -> bool:
    return planning.parts_like(failed).filter(state__in=[State.SUCCEEDED, State.PENDING]).exists()


def _let_go_unless(is_captured: bool, payment: Payment, now: datetime) -> None:
    """Give up an order's card that was not captured: its hold is released once it is written."""
    if payment.kind == Payment.Kind.ORDER and not is_captured:
        open_operations.abandon(payment, now)
        payment.abandoned_at = payment.abandoned_at or now


def _begin_share(payment: Payment) -> None:
    if payment.kind == Payment.Kind.SHARE:
        share = PaymentRequest.objects.get(pk=payment.subject)
        if share.status == ShareStatus.OPEN:
            share.move(ShareStatus.PAYING)


def _restore_refund(checkout: Checkout, payment: Payment, record: Record) -> bool:
    """Begin the refund anew that a lost one must have been; return whether it was one of the whole order.

    A mate's card gets back its share by a refund of the order alone, the lead's card all that it has borne.
    """
    if checkout.status != Status.CAPTURED:
        return False
    got = checkout.payment_requests.filter(status=ShareStatus.REIMBURSED).values_list("amount", flat=True)
    borne = payment.amount - (sum(got) if payment.kind == Payment.Kind.ORDER else 0)
    if record.amount != borne - bookings.given_back_outside(payment.pk):
        return False
    refunds.restore(checkout)
    return True


def _book(payment: Payment, record: Record, now: datetime) -> None:
    """Book a refund that is no whole one as one made in the provider's own dashboard, and leave it for a person."""
    bookings.refunded_outside(payment, record, note=NOTE, now=now, cause=PUMP)
    facts: dict[str, object] = {"checkout": str(payment.checkout_uuid)}
    facts |= {"payment": str(payment.pk), "amount": record.amount, "currency": payment.currency}
    discrepancies.report("restored_refund", record.key, merchant=payment.merchant_id, **facts)
