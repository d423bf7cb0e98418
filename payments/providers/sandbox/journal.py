"""Reads and writes the bank's journal. A line contains a call and the answer that repeated calls get.

When a line changes, the bank notifies its caller.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from uuid_utils.compat import uuid7

from config.lib import clock
from payments.provider import Outcome, PaymentRecord, Verdict
from payments.providers.sandbox.models import BankNotification, Call, Charge


def lines_about(charge: Charge) -> Sequence[Call]:
    """Return the lines about a charge, oldest first."""
    lines = list(Call.objects.filter(charge=charge).order_by("created_at"))
    for line in lines:
        line.charge = charge
    return lines


def remembered_answer(lines: Sequence[Call], key: UUID) -> Outcome | None:
    """Return the answer to a call with this key, or None if the key is new or no longer remembered."""
    for line in reversed(lines):
        if line.reference == key and line.is_remembered:
            life = timedelta(seconds=settings.SANDBOX_KEY_SECONDS)
            return outcome_of(line) if clock.now() - line.created_at < life else None
    return None


def newest_answer(lines: Sequence[Call], reference: UUID) -> Outcome | None:
    """Return the newest answer to a call with this key, even if the key is no longer remembered.

    If there are several answers, one that is not a refusal is preferred.
    """
    answers = [line for line in lines if line.reference == reference]
    answers.sort(key=lambda line: line.verdict not in (Verdict.FAILED, Verdict.DECLINED))
    return outcome_of(answers[-1]) if answers else None


def write_line(
    charge: Charge, lines: Sequence[Call], kind: str, key: UUID, verdict: Verdict, **facts: Any
) -> Outcome:
    """Add a line to the lines about a charge, and return its outcome.

    If there is already a line for the key, the new line gets a new id.
    """
    is_known = any(line.key == key for line in lines)
    facts = {"amount": charge.amount, "reference": key, "kind": kind, "verdict": verdict} | facts
    return outcome_of(Call.objects.create(key=uuid7() if is_known else key, charge=charge, **facts))


def change_line(line: Call, **facts: Any) -> None:
    """Change a line, and write a notification about the change."""
    for name, value in facts.items():
        setattr(line, name, value)
    line.changed_at = clock.now()
    line.save(update_fields=["changed_at", *facts])
    write_notification(line)


def forget_key(key: UUID, payment: UUID) -> None:
    """Forget the key of a call, so that the next call with this key counts as new. The lines are not deleted."""
    Call.objects.filter(charge__payment=payment, reference=key).update(is_remembered=False)


def write_notification(call: Call) -> BankNotification:
    """Write a notification about the call in its current state. It is sent later."""
    return BankNotification.objects.create(call=call, verdict=call.verdict, due_at=clock.now())


def payments_since(*, since: datetime) -> list[PaymentRecord]:
    """Return the caller's payments for which a charge was made since `since`."""
    return [
        payment_record(charge)
        for charge in Charge.objects.filter(pk__gte=clock.first_id(since)).order_by("pk")
    ]


def payment_record(charge: Charge) -> PaymentRecord:
    """Return the record of the caller's payment to which a charge belongs."""
    return PaymentRecord(
        payment=charge.payment,
        account=charge.account,
        subject=charge.payer,
        amount=charge.amount,
        currency=charge.currency,
        is_moved=charge.state not in (Charge.State.DECLINED, Charge.State.CHALLENGED),
        card=charge.shown_card,
    )


def outcome_of(call: Call) -> Outcome:
    """Return the answer to the call that is recorded in this line."""
    asks = call.verdict == Verdict.NEEDS_ACTION
    return Outcome(
        Verdict(call.verdict),
        reference=str(call.key),
        reason=call.reason,
        action_url=f"/bank/challenge/{call.key}" if asks else "",
        card=call.charge.shown_card,
        amount=call.amount,
    )
