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
from payments import reconciliation
from payments.closing import sums
from payments.models import Discrepancy
from payments.outside import balance

log = structlog.get_logger("payments.tasks")
LISTED = 100  # discrepancies that one mail describes
_TURN = "discrepancies.turn"  # by one worker at a time; by the next, if it died, after
_TURN_SECONDS = 120

ASK_THE_PROVIDER = "Compare the operation with the provider's own page, then set right what is wrong."
PROVE = "Run `manage.py prove_ledger`, find what moved the money, and stop the merchant if it goes on."
WHAT_TO_DO = {
    "disputed": "The payer's bank has taken the money back. Send evidence at the provider before respond_by."
    " Until it is decided nothing is refunded, and pay links pause.",
    "dispute_lost": "The payer keeps the money: it is the merchant's loss. Tell the merchant, then close this.",
    "dispute_decided_anew": "The provider has taken its decision back. Compare the ledger with its own page.",
    "dispute_of_another_amount": "The provider speaks of a dispute over more than was taken, or of what was not"
    " taken. Ask it which payment it means.",
    "owed_beyond_dispute": "The lead's card has got less by the dispute that was lost than mates have paid for it. The"
    " rest is owed to the lead and not sent by itself: ask the provider how to give it back.",
    "disputed_while_refunding": "The payer may get the money twice. Ask the provider to stop the refund, or the"
    " dispute.",
    "refund_returned": "A refund was settled, and its money is with the provider again. Send it again, or, if the card"
    " can't take it and the payer has got it otherwise, book that: on the operation's page. It stays open until then.",
    "in_doubt_for_a_day": "Ask the provider what became of it. We go on asking until it answers clearly. On the"
    " operation's page: give it up, or send it again.",
    "capture_pending_too_long": "Ask the provider what it waits for. We go on asking. If it vouches that nothing"
    " arrived, give it up on the operation's page.",
    "refund_part_failed": "It is tried for three days. Then send it again on the operation's page; or, if the card"
    " can't take it and the payer has got it otherwise, close it there as settled otherwise.",
    "share_not_reimbursed": "It is tried each day. If the card can't take it and the payer has got it otherwise,"
    " close it on the operation's page as settled otherwise.",
    "succeeded_under_an_old_key": "The provider had said that it never arrived, and did it later. It may have been done"
    " twice: compare with its own page.",
    "another_amount": "The provider answered with another amount. Ask it which one moved.",
    "captured_after_the_end": "The card was debited for an order that has ended. Give the money back there.",
    "void_refused": "The hold could not be released. Ask the provider to release it, or send it again on the"
    " operation's page.",
    "void_refused_as_captured": "The card was debited for an order that has ended. Give the money back there.",
    "forged_notification": "Compare the provider's signing secret with ours. If they agree, somebody tries.",
    "notification_of_nothing": "The provider speaks of what we never asked for. Ask it whose it is.",
    "outside_capture": "Somebody has captured it in the provider's own dashboard. If the order is still held, a capture"
    " of the merchant's finds it; if it has ended, give the money back there.",
    "outside_void": "Somebody has released the hold in the provider's own dashboard: nothing can be captured any more."
    " Tell the merchant.",
    "outside_refund": "Somebody has given money back in the provider's own dashboard. Tell the merchant, and book it on"
    " the discrepancy's page: then a refund gives back the rest; until then the provider refuses it.",
    "missing_here": "The provider has moved money that we know nothing of. Ask it who wanted that.",
    "unknown_order": "The database was restored to a moment before this order, whose card was charged. Find it at the"
    " merchant by amount and time: it is to be fulfilled or given back at the provider, as the merchant says.",
    "restored_refund": "This refund was lost when the database was restored, and is booked as made outside. Ask the"
    " merchant whether it was meant, then close this.",
    "sms_of_merchant_nearly_used_up": "Most of its SMS messages of today led to no payment. Suspend it if it is"
    " misused.",
    "sms_of_all_nearly_used_up": "Most SMS messages of today led to no payment. See whose they are, and who asks for"
    " them.",
    "card_page_changed": "Browsers get another payment page than this release delivers. The facts name each difference."
    " Compare proxies, content network and servers with the release. Stop all payments until you know the cause.",
    "card_page_unchecked": "The daily check of the payment page got no answer. Run `manage.py check_card_page` again."
    " This closes automatically after a check with all answers.",
    "missing_there": "The provider does not know what we hold for done. Ask it, before anything is fulfilled.",
}


@shared_task
def reconcile() -> None:
    """Reconcile what was done, or has changed in the provider's books, in the last two days."""
    reconciliation.compare(clock.now() - reconciliation.LOOK_BACK)


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
    return (
        f"{row.kind}\n"
        f"  merchant: {row.merchant or 'not known'}\n"
        f"  subject:  {row.subject or 'none'}\n"
        f"  since:    {row.created_at:%Y-%m-%d %H:%M:%S} UTC\n"
        f"  to do:    {_what_to_do(row.kind)}\n"
        f"  see:      {address}\n"
    )


def _what_to_do(kind: str) -> str:
    return PROVE if kind.startswith("ledger_") else WHAT_TO_DO.get(kind, ASK_THE_PROVIDER)
