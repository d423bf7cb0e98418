"""Ends calls that the bank has accepted: a call is carried out or fails, and a refund can be returned later."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest, Now

from config.lib import clock
from payments.provider import Verdict
from payments.providers.sandbox import disputing, journal
from payments.providers.sandbox.models import Call, Charge, Dispute

CARD_CLOSED = "card_account_closed"
STATE_AFTER_CALL = {"capture": Charge.State.CAPTURED, "void": Charge.State.VOIDED}


class Delay(NamedTuple):
    """The seconds until an accepted call ends (None: never), and the reason why it fails, if it does."""

    seconds: float | None
    reason: str = ""

    def starts(self, now: datetime) -> datetime | None:
        return None if self.seconds is None else now + timedelta(seconds=self.seconds)


def settle_due(payments: Sequence[UUID] | None = None) -> None:
    """Settle all due calls, and notify the caller of these calls and of newly opened disputes.

    If `payments` is not None, only calls and disputes about these payments are included.
    """
    now = clock.now()
    due = Q(verdict=Verdict.PENDING, settles_at__lte=now) | Q(returns_at__lte=now)
    calls = Call.objects.filter(due)
    calls = calls if payments is None else calls.filter(charge__payment__in=payments)
    for payment in set(calls.values_list("charge__payment", flat=True)):
        with transaction.atomic(durable=True):
            charge = lock_charge(payment)
            if charge is not None:
                settle_lines(journal.lines_about(charge))
    disputing.notify_of_opened(payments)


def lock_charge(payment: UUID) -> Charge | None:
    """Lock the charge of a payment and return it. Its lines are read and written only under this lock."""
    return Charge.objects.select_for_update(no_key=True).filter(payment=payment).first()


def settle_lines(lines: Iterable[Call]) -> None:
    """Carry out the due lines of a locked charge, and notify the caller."""
    waiting = [line for line in lines if line.verdict == Verdict.PENDING or line.returns_at]
    if not waiting:
        return
    now = clock.now()
    for line in waiting:
        if line.verdict == Verdict.PENDING and line.settles_at and line.settles_at <= now:
            _carry_out_line(line, now)
        if line.returns_at and line.returns_at <= now:
            _return_refund(line)


def advance(*, payments: Sequence[UUID], seconds: int) -> None:
    """Make all future changes to these payments happen `seconds` earlier.

    A period in which the bank does not answer also ends earlier.
    """
    sooner = timedelta(seconds=seconds)
    charges = Charge.objects.filter(payment__in=payments, silent_until__isnull=False)
    charges.update(silent_until=F("silent_until") - sooner)
    waiting = Call.objects.filter(charge__payment__in=payments)
    waiting.filter(verdict=Verdict.PENDING).update(settles_at=F("settles_at") - sooner)
    waiting.filter(returns_at__isnull=False).update(returns_at=F("returns_at") - sooner)
    disputes = Dispute.objects.filter(charge__payment__in=payments)
    disputes.update(respond_by=F("respond_by") - sooner)
    unopened = disputes.filter(opens_at__gt=Now())
    # A dispute must not be moved into the past. Otherwise, it would be missing in the list of new changes.
    unopened.update(opens_at=Greatest(F("opens_at") - sooner, Now()))


def end_refund(*, payment: UUID, reference: str, fails_with: str = "") -> None:
    """Make the next step of a refund happen now.

    A pending refund settles or, if `fails_with` is a reason, fails. A settled refund is returned to the merchant.
    """
    with transaction.atomic(durable=True):
        charge = lock_charge(payment)
        lines = journal.lines_about(charge) if charge else []
        (line,) = [line for line in lines if str(line.key) == reference and line.verdict != Verdict.FAILED]
        now = clock.now()
        if line.verdict == Verdict.PENDING:
            line.settles_at, line.fails_with = now, fails_with
            line.save(update_fields=["settles_at", "fails_with"])
        else:
            line.returns_at = now
        settle_lines([line])


def carry_out(kind: str, charge: Charge) -> None:
    """Capture or release the money of a charge, which must be locked."""
    charge.state = STATE_AFTER_CALL[kind]
    charge.save(update_fields=["state"])
    if kind == "capture" and charge.card.disputed_in:
        disputing.open_dispute(charge, seconds=charge.card.disputed_in)


def _carry_out_line(line: Call, now: datetime) -> None:
    """Make the call in this line succeed or fail. If a refund is to be returned, it settles first.

    The return follows after a delay, even if this line is processed late.
    """
    charge, returns_at = line.charge, None
    if not line.fails_with and line.kind != "refund":
        carry_out(line.kind, charge)
    elif not line.fails_with:
        charge.refunded_amount += line.amount
        charge.save(update_fields=["refunded_amount"])
        if charge.card.refund_returns_in:
            returns_at = now + timedelta(seconds=charge.card.refund_returns_in)
    verdict = Verdict.FAILED if line.fails_with else Verdict.SUCCEEDED
    journal.change_line(line, verdict=verdict, reason=line.fails_with, returns_at=returns_at)


def _return_refund(line: Call) -> None:
    charge = line.charge
    charge.refunded_amount -= line.amount
    charge.save(update_fields=["refunded_amount"])
    journal.change_line(line, verdict=Verdict.FAILED, reason=CARD_CLOSED, returns_at=None, has_returned=True)
