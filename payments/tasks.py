"""Celery tasks for payments: reconciliation, the provider's balance, closed ledger days, and discrepancy mails."""

from collections.abc import Sequence
from datetime import datetime
from importlib import import_module

import structlog
from celery import shared_task
from django.conf import settings
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.urls import reverse

from config.lib import clock
from payments.closed_days import sums
from payments.inquiring import balance, reconciliation
from payments.models import Discrepancy

log = structlog.get_logger("payments.tasks")
LISTED = 100  # maximum number of discrepancies in one mail
_TURN = "discrepancies.turn"  # the cache key that allows only one worker at a time to send mails
_TURN_SECONDS = 120  # after this, another worker can send mails, in case the first worker has died


@shared_task
def reconcile() -> None:
    """Open an inquiry about every payment that has changed since the last complete reconciliation."""
    reconciliation.run()


@shared_task
def read_balance() -> None:
    """Store the fees and payouts in the provider's balances from the last three days."""
    balance.read_balance(clock.now() - balance.LOOK_BACK)


@shared_task
def close_days() -> None:
    """Close the ledger days that have ended, and sum the days that can no longer get postings."""
    sums.close_days(clock.now())


@shared_task
def mail_discrepancies() -> None:
    """Send the operators a mail about the open discrepancies that no mail has listed yet, at most one mail a minute.

    If the mail cannot be sent, the next mail includes these discrepancies. If the process dies after it has sent the
    mail, the discrepancies are sent again. Rule money.discrepancy.
    """
    if not settings.OPERATORS or not cache.add(_TURN, True, _TURN_SECONDS):
        return
    try:
        now = clock.now()
        rows = _discrepancies_to_mail(now)
        if rows and _send_mail(rows):  # no transaction is open, because a mail server can be slow
            Discrepancy.objects.filter(pk__in=[row.pk for row in rows]).update(mailed_at=now)
    finally:
        cache.delete(_TURN)


def _discrepancies_to_mail(now: datetime) -> Sequence[Discrepancy]:
    """Return the discrepancies for the next mail, without those that close before the mail is written.

    The list is empty if a mail was already sent in this minute.
    """
    this_minute = now.replace(second=0, microsecond=0)
    if Discrepancy.objects.filter(mailed_at__gte=this_minute).exists():
        return []
    rows = Discrepancy.objects.select_related("merchant")
    return list(rows.filter(mailed_at=None, closed_at=None).order_by("created_at"))


def _send_mail(rows: Sequence[Discrepancy]) -> bool:
    noun = "discrepancy needs" if len(rows) == 1 else "discrepancies need"
    subject = f"{settings.ENVIRONMENT}: {len(rows)} {noun} your attention"
    try:
        EmailMessage(subject, _write_mail(rows), to=settings.OPERATORS).send()
    except OSError as error:
        log.error("mail not sent", discrepancies=len(rows), error=type(error).__name__)
        return False
    return True


def _write_mail(rows: Sequence[Discrepancy]) -> str:
    listed = rows[:LISTED]
    # A module of a higher layer knows the orders and the amounts.
    describer = import_module(settings.DISCREPANCIES_DESCRIBED_BY)
    orders = describer.orders_and_amounts([row.pk for row in listed])
    parts = [_describe_discrepancy(row, *orders[row.pk]) for row in listed]
    if len(rows) > LISTED:
        address = settings.PORTAL_URL + reverse("admin:payments_discrepancy_changelist")
        parts.append(f"And {len(rows) - LISTED} more: {address}\n")
    return "\n".join(parts)


def _describe_discrepancy(row: Discrepancy, order_id: str, amount: str) -> str:
    """Return the lines about one discrepancy in the mail.

    The facts are omitted, because not every recipient is allowed to see them.
    """
    kind = row.kind_entry
    lines = {
        "merchant": str(row.merchant or "not known"),
        "order": order_id,
        "amount": amount,
        "since": f"{row.created_at:%Y-%m-%d %H:%M:%S} UTC",
        "to do": kind.what_to_do,
        "remedy": kind.remedy if kind.remedies else "",
        "runbook": kind.runbook_page,
        "see": settings.PORTAL_URL + reverse("admin:payments_discrepancy_change", args=[row.pk]),
    }
    text_lines = [f"  {f'{name}:':<9} {words}\n" for name, words in lines.items() if words]
    return f"{kind.sentence}\n{''.join(text_lines)}"
