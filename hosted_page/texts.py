"""The text messages that we send: how many at most (INTERFACE.md 8), and those that wait to be sent."""

from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from config.lib import address as network
from config.lib import batches, clock, crypto
from hosted_page.models import SignInCode, Text

log = structlog.get_logger("hosted_page.texts")

GAP = timedelta(seconds=30)  # between two codes to one number
PER_NUMBER = ((timedelta(hours=1), 5), (timedelta(days=1), 10))
PER_ADDRESS = (timedelta(hours=1), 300)
RANGE_DIGITS = 4  # a range is what has all but these in common: who is paid for texts owns numbers in blocks
INVITATIONS = 20  # of one checkout, reminders not counted


class NotSent(Exception):
    """No text is on its way; the message says what to do."""


class TooManyTexts(NotSent):
    """A limit on sending texts is reached."""


def count(kind: str, phone: str, *, subject: UUID, checkout_uuid: UUID, address: str) -> Text:
    """Count a text to an E.164 number, asked for from `address`; nothing is sent yet.

    Belongs into the transaction of what it is about. Raises TooManyTexts.
    """
    now = clock.now()
    number_range = phone[:-RANGE_DIGITS]
    with connection.cursor() as cursor:  # two requests for numbers of one range count one after the other
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"text:{number_range}"])
    address_digest = crypto.keyed_digest("address", network.network(address))
    _check_number(kind, phone, now)
    period, most = PER_ADDRESS
    if Text.objects.filter(address_digest=address_digest, created_at__gt=now - period).count() >= most:
        raise TooManyTexts(_("Too many texts were asked for from your network. Try again in an hour."))
    _check_range(number_range, now)
    return Text.objects.create(
        kind=kind,
        phone=phone,
        language=get_language() or settings.LANGUAGE_CODE,
        number_range=number_range,
        subject=subject,
        checkout_uuid=checkout_uuid,
        address_digest=address_digest,
        created_at=now,
        next_try_at=None if kind == Text.Kind.CODE else now,
    )


def _check_number(kind: str, phone: str, now: datetime) -> None:
    to_number = Text.objects.filter(phone=phone)
    if kind == Text.Kind.CODE and to_number.filter(kind=kind, created_at__gt=now - GAP).exists():
        raise TooManyTexts(_("We have just sent a code. Wait half a minute, then ask again."))
    for period, most in PER_NUMBER:
        if to_number.filter(created_at__gt=now - period).count() >= most:
            raise TooManyTexts(
                _("This number has had too many texts. Try again later, or use another number.")
            )


def _check_range(number_range: str, now: datetime) -> None:
    """A breaker: a block of numbers that has used up its day's budget gets nothing more for now."""
    of_range = Text.objects.filter(number_range=number_range, created_at__gt=now - timedelta(days=1))
    if of_range.count() >= settings.SMS_RANGE_BUDGET:
        log.error("no more texts to a range of numbers today", number_range=number_range)
        raise TooManyTexts(_("We cannot text this number now. Use another number, or try again tomorrow."))


def forget_old() -> None:
    """Remove texts and codes, with their numbers, that no limit looks at any more and no pay link can need."""
    before = clock.now() - settings.PAY_LINK_LIFETIME - timedelta(days=1)
    batches.delete(Text.objects.filter(created_at__lt=before))
    batches.delete(SignInCode.objects.filter(pk__lt=clock.first_id(before)))
