"""The tasks of payments: the nightly reconciliation, and the operators' mail about discrepancies."""

from collections.abc import Sequence
from datetime import datetime

import structlog
from celery import shared_task
from django.conf import settings
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.urls import reverse

from config.lib import clock
from payments import balance
from payments.closing import sums
from payments.inquiring import reconciliation
from payments.models import Discrepancy

log = structlog.get_logger("payments.tasks")
LISTED = 100  # discrepancies that one mail describes
_TURN = "discrepancies.turn"  # by one worker at a time; by the next, if it died, after
_TURN_SECONDS = 120


@shared_task
def reconcile() -> None:
    """Have the books read of every payment that has changed since the last complete reconciliation."""
    reconciliation.run()


@shared_task
def read_balance() -> None:
    """Keep what the provider's balances say of the last three days: fees, and what was paid out."""
    balance.read(clock.now() - balance.LOOK_BACK)


@shared_task
def close_days() -> None:
    """Close the ledger's days that are over, and sum those that nobody posts into any more."""
    sums.close(clock.now())


@shared_task
def mail_discrepancies() -> None:
    """Mail the operators the discrepancies that they have not been mailed yet: at most one mail a minute.

    If the mail fails, the next one has them; if the process dies after it, they are mailed twice.
    Rule money.discrepancy.
    """
    if not settings.OPERATORS or not cache.add(_TURN, True, _TURN_SECONDS):
        return
    try:
        now = clock.now()
        rows = _waiting(now)
        if rows and _send(rows):  # with no transaction open: a mail server may take its time
            Discrepancy.objects.filter(pk__in=[row.pk for row in rows]).update(mailed_at=now)
    finally:
        cache.delete(_TURN)


def _waiting(now: datetime) -> Sequence[Discrepancy]:
    """Return the discrepancies to mail, none in a minute that has had its mail."""
    this_minute = now.replace(second=0, microsecond=0)
    if Discrepancy.objects.filter(mailed_at__gte=this_minute).exists():
        return []
    rows = Discrepancy.objects.select_related("merchant")
    return list(rows.filter(mailed_at=None).order_by("created_at"))


def _send(rows: Sequence[Discrepancy]) -> bool:
    noun = "discrepancy needs" if len(rows) == 1 else "discrepancies need"
    subject = f"{settings.ENVIRONMENT}: {len(rows)} {noun} a person"
    try:
        EmailMessage(subject, _body(rows), to=settings.OPERATORS).send()
    except OSError as error:
        log.error("mail not sent", discrepancies=len(rows), error=type(error).__name__)
        return False
    return True


def _body(rows: Sequence[Discrepancy]) -> str:
    parts = [_about(row) for row in rows[:LISTED]]
    if len(rows) > LISTED:
        address = settings.PORTAL_URL + reverse("admin:payments_discrepancy_changelist")
        parts.append(f"And {len(rows) - LISTED} more: {address}\n")
    return "\n".join(parts)


def _about(row: Discrepancy) -> str:
    """Return the lines about one discrepancy, without its facts: those are not for everybody who may read a mail."""
    address = settings.PORTAL_URL + reverse("admin:payments_discrepancy_change", args=[row.pk])
    kind = row.kind_entry
    return (
        f"{kind.sentence}\n"
        f"  kind:     {kind.name}\n"
        f"  merchant: {row.merchant or 'not known'}\n"
        f"  subject:  {row.subject or 'none'}\n"
        f"  since:    {row.created_at:%Y-%m-%d %H:%M:%S} UTC\n"
        f"  to do:    {kind.what_to_do}\n"
        f"  remedy:   {kind.remedy}\n"
        f"  runbook:  {kind.runbook_page}\n"
        f"  see:      {address}\n"
    )
