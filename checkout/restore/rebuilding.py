"""Writes lost payments and operations again, under their own ids, as the provider's books have them.

Each order is locked, and its outcomes are recorded as ever: so states, ledger and events follow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from django.db import transaction

from checkout import outcomes, refunds
from checkout.models import Checkout, PaymentRequest
from checkout.outside import returned_refunds
from checkout.states import ShareStatus, Status
from config.lib import clock
from payments import discrepancies, open_operations, operations, planning
from payments.cause import PUMP
from payments.models import Operation, Payment
from payments.outside import bookings, returns
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

    If another card is live for the same, it is written as given up until the books show which one was captured.
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
    """Make a lost payment that was captured the live one, instead of the card that was not captured."""
    other = open_operations.live_payment(payment.subject)
    if payment.abandoned_at is not None and not payment.operations.exists():
        if other is not None:
            open_operations.abandon(other.payment, now)
        Payment.objects.filter(pk=payment.pk).update(abandoned_at=None)
        payment.abandoned_at = None


def conclude(operation_uuid: UUID, *, is_captured: bool) -> bool:
    """Look up an operation of ours that the provider has ended, and record its outcome; return whether it has ended.

    Raises ProviderUnreachable.
    """
    operation = operations.current(operation_uuid)
    outcome = operations.look_up(operation)
    if outcome.verdict == Verdict.UNKNOWN:
        raise ProviderUnreachable  # its books show an outcome that its answer does not
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(operation.payment.checkout_uuid), clock.now()
        operation = operations.current(operation_uuid)
        if operation.kind == Kind.AUTHORIZE:
            _let_go_unless(is_captured, operation.payment, now)
        outcomes.conclude(checkout, operation, outcome, now=now, lease=operation.lease_token)
        checkout.touch()
    return operation.ended_at is not None


def revive(operation_uuid: UUID) -> bool:
    """Record that a lost attempt made a capture which counts as failed; return whether the order was still held."""
    of_operation = operations.current(operation_uuid)
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(of_operation.payment.checkout_uuid), clock.now()
        payment = Payment.objects.get(pk=of_operation.payment_id)
        if checkout.payment_id != payment.pk or checkout.status != Status.AUTHORIZED:
            return False
        outcomes.recover(checkout, payment, now)
    return True


def book_returned(payment_uuid: UUID) -> None:
    """Look up a payment's settled refunds, and book those that came back. Raises ProviderUnreachable."""
    answers = returns.ask(payment_uuid)
    if any(answer.outcome.verdict == Verdict.UNKNOWN for answer in answers):
        raise ProviderUnreachable
    of_payment = Payment.objects.only("checkout_uuid").get(pk=payment_uuid)
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(of_payment.checkout_uuid)
        for answer in answers:
            returned_refunds.book(checkout, answer)


def leave_old_key(payment_uuid: UUID, record: Record) -> None:
    """End an open refund that was sent under a new key in the lost time, as this record of the provider's shows.

    Only if the provider vouches that the old key never arrived: one refund of a payment is under way at a time, so the
    record must be the same refund. Sent again under the old key, it would be given back twice.
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
    """Write again the operations in these records of one payment. Raises StillOpen.

    `is_captured`: whether the provider has captured the payment. If not, its hold is released, since its two minutes
    are over and nobody knows who was told of it; the order may be paid anew.
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
        unwanted = []
        for record in sorted(records, key=lambda record: ORDER.index(Kind(record.kind))):
            if record.kind == Kind.REFUND and not _wanted(payment, record):
                unwanted.append(record)
            else:
                _write(checkout, payment, record, is_captured, now)
                done.operations += 1
        for record in unwanted:
            is_written = _write_refund(checkout, payment, record, is_captured, now)
            done.operations += is_written
            done.booked += not is_written
        checkout.touch()
    return done


def _write_refund(
    checkout: Checkout, payment: Payment, record: Record, is_captured: bool, now: datetime
) -> bool:
    """Write a refund that no row of ours wants, as part of a refund begun again; else book it, and return False.

    One that gives again what came back begins none, also where its amount is all that the card has borne.
    """
    part = _given_again(payment, record, now)
    if part is None and _restore_refund(checkout, payment, record) and _wanted(payment, record):
        _write(checkout, payment, record, is_captured, now)
        return True
    _book(checkout, payment, record, part, now)
    return False


def _write(checkout: Checkout, payment: Payment, record: Record, is_captured: bool, now: datetime) -> None:
    """Write a lost operation as in flight, in place of our planned one if there is one, and record its outcome."""
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
        attempts=2,  # as if sent in time and then again: when it was sent is lost
        actor=PUMP.actor,
        created_at=now,
        **like,
    )
    outcomes.conclude(checkout, operation, Outcome(record.verdict), now=now)


_COPIED = ("purpose", "account", "refund_uuid", "share_uuid")


def _wanted(payment: Payment, record: Record) -> Operation | None:
    """Return our operation that this record is a later attempt at, None if there is none.

    It is a planned one, or a failed refund that no later attempt has made good.
    """
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
    """Begin again the refund that this lost operation belonged to; return whether it was a refund of the whole order.

    It was if a mate's card got its share back, or the lead's card all that it has borne. Rule restore.refund.
    """
    if checkout.status != Status.CAPTURED:
        return False
    got = checkout.payment_requests.filter(status=ShareStatus.REIMBURSED).values_list("amount", flat=True)
    borne = payment.amount - (sum(got) if payment.kind == Payment.Kind.ORDER else 0)
    if record.amount != borne - bookings.given_back_outside(payment.pk):
        return False
    refunds.restore(checkout)
    return True


def _book(
    checkout: Checkout, payment: Payment, record: Record, part: Operation | None, now: datetime
) -> None:
    """Book a refund that was not of the whole order as made in the provider's dashboard, and report it."""
    returned_refunds.book_outside(checkout, record, part, note=NOTE, now=now, cause=PUMP)
    facts: dict[str, object] = {"checkout": str(payment.checkout_uuid)}
    facts |= {"payment": str(payment.pk), "amount": record.amount, "currency": payment.currency}
    discrepancies.report("restored_refund", record.key, merchant=payment.merchant_id, **facts)


def _given_again(payment: Payment, record: Record, now: datetime) -> Operation | None:
    """Return the refund that came back and that this one gives again; None if it is another, or sent again by us."""
    owed = (part for part in returns.outstanding_on(payment.pk) if part.amount == record.amount)
    return next(
        (part for part in owed if planning.withdraw_planned(planning.parts_like(part), now=now)), None
    )
