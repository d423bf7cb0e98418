"""Limits on SMS messages: per number, address, range of numbers, order and day (rules sms.address, sign_in.limits).

Call each in the transaction that writes the message, with what is counted locked by the outbox.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from config.lib import quota
from config.lib.quota import Limit
from hosted_page import moments
from hosted_page.models import SmsMessage
from hosted_page.sms import budgets, countries

log = structlog.get_logger("hosted_page.sms.limits")

GAP = timedelta(seconds=30)  # between two codes to one number
PER_NUMBER = (Limit(5, timedelta(hours=1)), Limit(10, timedelta(days=1)))
PER_ADDRESS = Limit(300, timedelta(hours=1))
RANGE_DIGITS = 4  # by which numbers of a range differ: fraudsters who earn by SMS own numbers in blocks
RANGE_PERIOD = timedelta(days=1)
INVITATIONS = 20  # of one checkout, reminders not counted
Kind = SmsMessage.Kind


class TooManySmsMessages(Exception):
    """A limit is reached, and nothing is sent; the text says what to do."""


def check_country(phone: str) -> None:
    """Raise TooManySmsMessages for a number of a country to which we send nothing."""
    if settings.SMS_COUNTRIES and countries.country_of(phone) not in settings.SMS_COUNTRIES:
        raise TooManySmsMessages(_("We send no texts to this country. Use a number of another one."))


def check_number(row: SmsMessage, now: datetime) -> None:
    if row.kind == Kind.CODE and quota.free_at(_codes_to_number, row.phone_digest, Limit(1, GAP), now):
        raise TooManySmsMessages(just_sent())
    free_at = number_free_at(row, now)
    if free_at is not None:
        words = _("This number has had too many texts. Try again {when}, or use another number.")
        raise TooManySmsMessages(words.format(when=moments.until(free_at, now)))


def just_sent() -> str:
    """Return the error for somebody who asks for two codes at once."""
    return _("We have just sent a code. Wait half a minute, then ask again.")


def number_free_at(row: SmsMessage, now: datetime) -> datetime | None:
    times = [quota.free_at(_to_number, row.phone_digest, limit, now) for limit in PER_NUMBER]
    return max((free_at for free_at in times if free_at is not None), default=None)


def check_address(row: SmsMessage, now: datetime) -> None:
    free_at = _free_at(_from_address, row.address_digest, PER_ADDRESS, now)
    if free_at is not None:
        words = _("Too many texts were asked for from your network. Try again {when}.")
        raise TooManySmsMessages(words.format(when=moments.until(free_at, now)))


def check_range(row: SmsMessage, now: datetime) -> None:
    """Raise TooManySmsMessages if the number's block of numbers has used up its day's budget."""
    limit = Limit(settings.SMS_RANGE_BUDGET, RANGE_PERIOD)
    free_at = _free_at(_to_range, row.range_digest, limit, now)
    if free_at is not None:
        log.error("no more SMS messages to a range of numbers today", number_range=row.range_digest[:12])
        words = _("We cannot text this number now. Use another number, or try again {when}.")
        raise TooManySmsMessages(words.format(when=moments.until(free_at, now)))


def _to_number(digest: str) -> QuerySet[SmsMessage]:
    return SmsMessage.objects.filter(phone_digest=digest)


def _codes_to_number(digest: str) -> QuerySet[SmsMessage]:
    return _to_number(digest).filter(kind__in=[Kind.CODE, Kind.RETURN])


def _from_address(digest: str) -> QuerySet[SmsMessage]:
    return SmsMessage.objects.filter(address_digest=digest, is_counted=True)


def _unpaid_from_address(digest: str) -> QuerySet[SmsMessage]:
    return budgets.unpaid(_from_address(digest))


def _to_range(digest: str) -> QuerySet[SmsMessage]:
    return SmsMessage.objects.filter(range_digest=digest, is_counted=True)


def _unpaid_to_range(digest: str) -> QuerySet[SmsMessage]:
    return budgets.unpaid(_to_range(digest))


_UNPAID: dict[Callable[[str], QuerySet[SmsMessage]], Callable[[str], QuerySet[SmsMessage]]] = {
    _from_address: _unpaid_from_address,
    _to_range: _unpaid_to_range,
}


def _free_at(
    counted: Callable[[str], QuerySet[SmsMessage]], digest: str, limit: Limit, now: datetime
) -> datetime | None:
    """Return `quota.free_at` of the unpaid messages; looks for those paid just now only if the limit is reached."""
    return quota.free_at(counted, digest, limit, now) and quota.free_at(_UNPAID[counted], digest, limit, now)


def spend_budgets(row: SmsMessage, now: datetime) -> None:
    free_at = budgets.spend_of_merchant(row.merchant, now)
    words = _("This shop has had all the texts that it may send today. Try again {when}.")
    if free_at is None:
        free_at = budgets.spend_of_all(now)
        words = _("We have sent all the texts that we may send today. Try again {when}.")
    if free_at is not None:
        log.error("no more SMS messages today", merchant=str(row.merchant_id))
        raise TooManySmsMessages(words.format(when=moments.until(free_at, now)))
