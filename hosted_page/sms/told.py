"""Tells leads by text what has become of their mates' shares, from rows that were written with it.

Rules lead.told, lead.language.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import translation
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from checkout import reading
from checkout.models import Checkout, LeadTold, PaymentRequest
from checkout.states import SHARE_PAID, ShareStatus, Status
from config.lib import clock, quota
from hosted_page.group import last_day
from hosted_page.models import SmsMessage
from hosted_page.payment_target import PaymentTarget, absolute
from hosted_page.sms import naming, outbox
from hosted_page.sms.limits import TooManySmsMessages
from hosted_page.sms.outbox import Asked
from payments import disputes, money, switches

A_RUN = 100  # rows at most
PER_CHECKOUT = 4
LIFE = timedelta(hours=1)  # after which an unsent message is not sent any more
PAUSED = timedelta(hours=1)  # between two looks at an order while it is refunded, or a bank looks into it
Kind = LeadTold.Kind


def tell() -> None:
    """Queue a text for each lead who is to be told something now."""
    for _number in range(A_RUN):
        if not _tell_next():
            return


def _tell_next() -> bool:
    """Tell the first thing that is due; return False if nothing is."""
    with transaction.atomic(durable=True):
        rows = LeadTold.objects.filter(ended_at=None, due_at__lte=Now()).order_by("due_at")
        row = rows.select_for_update(of=("self",), skip_locked=True).first()
        if row is None:
            return False
        now = clock.now()
        checkout = Checkout.objects.select_related("merchant", "lead").get(pk=row.checkout_id)
        shares = reading.shares(checkout)
        later = _later(row, checkout, shares, now)
        if later is not None:
            row.due_at = later
        else:
            row.ended_at = now
            _text(row, checkout, shares, now)
        row.save(update_fields=["due_at", "ended_at"])
    return True


def _later(row: LeadTold, checkout: Checkout, shares: list[PaymentRequest], now: datetime) -> datetime | None:
    """Return when to look again: links that were paused, or asked for anew, end later. None for now."""
    if _is_paused(row, checkout):
        return now + PAUSED
    end = last_day.ends_at(shares)
    if row.kind != Kind.LINKS_END or end is None or end - last_day.LASTS <= now:
        return None
    return end - last_day.LASTS


def _is_paused(row: LeadTold, checkout: Checkout) -> bool:
    """Whether it has to wait for what becomes of the order.

    While a card of the order is disputed nobody is asked to do what only links that work allow; while the order is
    being refunded nothing is told, and all of it if the refund fails.
    """
    is_disputed = row.kind != Kind.ALL_PAID and disputes.is_open(checkout.pk)
    return is_disputed or checkout.status == Status.REFUNDING


def _text(row: LeadTold, checkout: Checkout, shares: list[PaymentRequest], now: datetime) -> None:
    """Queue the text, unless it is not true any more, the order has had its texts, or a limit is reached."""
    with translation.override(checkout.language or settings.LANGUAGE_CODE):
        body = _words(row, checkout, shares)
    lead, target = checkout.lead, PaymentTarget(checkout)
    if not body or lead is None or not lead.phone or _has_had_all(checkout):
        return
    try:
        switches.check(checkout.merchant)
        # nobody's address asked for it: each order counts for itself
        asked = Asked(SmsMessage.Kind.LEAD, lead.phone, target, body, now + LIFE, str(checkout.pk))
        with transaction.atomic():
            outbox.put(asked, key=row.pk)
    except (TooManySmsMessages, switches.MerchantSuspended, switches.AllStopped):
        return


def _has_had_all(checkout: Checkout) -> bool:
    """Whether the order's lead has had or may have had all texts: not those that ended before anybody sent them.

    Whoever else has something to tell of the order waits until this transaction ends, so that each text is counted.
    """
    quota.lock(f"told:{checkout.pk}")
    texts = SmsMessage.objects.filter(checkout_uuid=checkout.pk, kind=SmsMessage.Kind.LEAD)
    return texts.exclude(ended_at__isnull=False, claimed_at=None).count() >= PER_CHECKOUT


def _words(row: LeadTold, checkout: Checkout, shares: list[PaymentRequest]) -> str:
    """Return what the lead reads, "" if it is not so any more."""
    about = _about(row, shares) if checkout.status == Status.CAPTURED else []
    if not about:
        return ""
    name = ""
    match row.kind:
        case Kind.SAID_NO:
            name = naming.plain(about[0].name)
            words = _("{name} said no to {amount} at {shop}. Ask again or keep it: {link}")
        case Kind.ALL_PAID if len(about) == len(shares):
            words = _("All your mates have paid their shares at {shop}, {amount} in all: {link}")
        case Kind.ALL_PAID:
            words = _("Your mates have paid {amount} at {shop}, and nobody is asked for more: {link}")
        case _:
            words = _(
                "{amount} at {shop} is not paid yet, and the links to it end in a day."
                " Remind your mates: {link}"
            )
    return _filled(words, checkout, about, name) + (f"#{last_day.ID}" if row.kind == Kind.LINKS_END else "")


def _about(row: LeadTold, shares: list[PaymentRequest]) -> list[PaymentRequest]:
    """Return the shares of which the lead is told, none if it is not so any more, or the links do not work."""
    if row.kind != Kind.ALL_PAID and disputes.standing(row.checkout_id) is not None:
        return []
    if row.kind == Kind.SAID_NO:
        return [
            share for share in shares if share.pk == row.share_uuid and share.status == ShareStatus.DECLINED
        ]
    if row.kind == Kind.ALL_PAID:
        asked = [share for share in shares if share.status != ShareStatus.CANCELLED]
        return asked if all(share.status in SHARE_PAID for share in asked) else []
    return [share for share in shares if share.status == ShareStatus.OPEN]


def _filled(words: str, checkout: Checkout, about: list[PaymentRequest], name: str) -> str:
    return words.format(
        name=name or _("A mate"),
        amount=money.for_payer(sum(share.amount for share in about), checkout.currency),
        shop=naming.shop(checkout.merchant),
        link=absolute(PaymentTarget(checkout).way_back()),
    )


def is_wanted(message: SmsMessage) -> bool:
    """Return whether what a text tells its lead is still so; what has happened again since is told by another text."""
    row = LeadTold.objects.select_related("checkout").filter(pk=message.pk).first()
    if row is None or row.checkout.status != Status.CAPTURED:
        return False
    return bool(_about(row, reading.shares(row.checkout)))


def take_back(message: SmsMessage) -> None:
    """Let what a text would have told, which nobody sends, wait as if it had not been queued, if the order is paused.

    So too if it is so once more: the pause has ended since. Its id is new, as that of what happens again: it will be
    another text.
    """
    row = LeadTold.objects.select_related("checkout").filter(pk=message.pk).first()
    if row is not None and (_is_paused(row, row.checkout) or is_wanted(message)):
        waits = LeadTold.objects.filter(pk=row.pk)
        waits.update(id=uuid7(), due_at=clock.now() + PAUSED, ended_at=None)
