"""Limits on SMS messages: per number, address, range of numbers, order and day (rules sms.address, sign_in.limits).

Call them in the transaction that writes the message, with what is counted locked by the outbox.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

import structlog
from django.conf import settings
from django.db import connection
from django.utils.translation import gettext as _

from config.lib import quota
from config.lib.quota import Limit
from hosted_page import moments
from hosted_page.models import SmsMessage
from hosted_page.sms import budgets, countries, stops

log = structlog.get_logger("hosted_page.sms.limits")

GAP = timedelta(seconds=30)  # between two codes to one number
PER_NUMBER = (Limit(5, timedelta(hours=1)), Limit(10, timedelta(days=1)))
PER_ADDRESS = Limit(300, timedelta(hours=1))
RANGE_DIGITS = 4  # by which numbers of a range differ: fraudsters who earn by SMS own numbers in blocks
RANGE_PERIOD = timedelta(days=1)
INVITATIONS = 20  # of one checkout, reminders not counted
Kind = SmsMessage.Kind
CODES = SmsMessage.CODES


class TooManySmsMessages(Exception):
    """A limit is reached, and nothing is sent; the text says what to do."""


class CodeJustAsked(TooManySmsMessages):
    """A code was asked for so short a time ago that `seconds` have to pass before the next one."""

    def __init__(self, seconds: float) -> None:
        super().__init__(_("A code was asked for just now. Wait half a minute, then ask again."))
        self.seconds = max(1, math.ceil(seconds))


def check_country(phone: str) -> None:
    """Raise TooManySmsMessages for a number of a country to which we send nothing."""
    if settings.SMS_COUNTRIES and countries.country_of(phone) not in settings.SMS_COUNTRIES:
        raise TooManySmsMessages(_("We send no texts to this country. Use a number of another one."))


def check_stopped(row: SmsMessage) -> None:
    """Raise TooManySmsMessages for a number that wants no texts but codes (rule sms.stop)."""
    if row.kind not in CODES and stops.has_stopped(row.alike["phone_digest"]):
        if row.kind == Kind.RECEIPT:
            raise TooManySmsMessages(_("This number wants no texts from us but codes. Print the receipt."))
        raise TooManySmsMessages(_("This number wants no texts from us. Send the link yourself."))


class Found(NamedTuple):
    """The time, and until when each limit lets no more messages pass, None where one may pass now."""

    now: datetime
    code: datetime | None
    hour: datetime | None
    day: datetime | None
    address: datetime | None
    site: datetime | None
    range: datetime | None


def look(row: SmsMessage) -> Found:
    """Return how the limits stand for a message, which is not among what they count yet."""
    limits = {"code": Limit(1, GAP), "hour": PER_NUMBER[0], "day": PER_NUMBER[1]}
    limits |= {"address": PER_ADDRESS, "site": PER_ADDRESS.of_site()}
    limits |= {"range": Limit(settings.SMS_RANGE_BUDGET, RANGE_PERIOD)}
    keys = len(row.alike["phone_digest"])
    ranges: Sequence[str | None] = row.alike["range_digest"] or [None] * keys  # None matches no row
    counted: dict[str, Any] = {
        **quota.parameters("phone_digest", row.alike["phone_digest"]),
        **quota.parameters("address_digest", row.alike["address_digest"]),
        **quota.parameters("site_digest", row.alike["site_digest"]),
        **quota.parameters("range_digest", ranges),
        **{f"{name}_within": limit.within for name, limit in limits.items()},
        **{f"{name}_before": max(0, limit.maximum - 1) for name, limit in limits.items()},
    }
    with connection.cursor() as cursor:
        cursor.execute(_deciding(keys), counted)
        now, *deciding = cursor.fetchone()
    free_at = [
        now + limit.within if limit.maximum == 0 else at and at + limit.within
        for at, limit in zip(deciding, limits.values(), strict=True)
    ]
    return Found(now, *free_at)


# Plain SQL in one statement: a row that decides is the oldest of as many as there may be, none if there are fewer.
_DECIDES = """(
    SELECT created_at FROM hosted_page_smsmessage
    WHERE {counted} AND created_at > now - %({name}_within)s
    ORDER BY created_at DESC OFFSET %({name}_before)s LIMIT 1
)"""
_COUNTED = {
    "code": "phone_digest IN ({phone_digest}) AND kind IN ('code', 'return')",
    "hour": "phone_digest IN ({phone_digest})",
    "day": "phone_digest IN ({phone_digest})",
    "address": "address_digest IN ({address_digest}) AND is_counted",
    "site": "site_digest IN ({site_digest}) AND NOT site_digest = '' AND is_counted",
    "range": "range_digest IN ({range_digest}) AND is_counted",
}


@cache
def _deciding(keys: int) -> str:
    """Return the statement for as many digests of each value as there are keys."""
    names = ("phone_digest", "address_digest", "site_digest", "range_digest")
    digests = {name: quota.placeholders(name, keys) for name in names}
    deciding = (_DECIDES.format(name=name, counted=of.format(**digests)) for name, of in _COUNTED.items())
    return f"""
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now) SELECT now, {", ".join(deciding)} FROM clock
"""  # noqa: S608 - of our own constants only


def check_number(row: SmsMessage, found: Found) -> None:
    """Raise TooManySmsMessages if a code has just gone to the number, or enough have gone to it."""
    if row.kind == Kind.CODE and found.code:
        raise CodeJustAsked((found.code - found.now).total_seconds())
    free_at = number_free_at(found)
    if free_at is not None:
        words = _("This number gets no more texts for now. Try again {when}, or use another number.")
        if row.kind == Kind.RECEIPT:  # it goes to the number that has paid, and to no other
            words = _("This number gets no more texts for now. Try again {when}.")
        raise TooManySmsMessages(words.format(when=moments.until(free_at, found.now)))


def number_free_at(found: Found) -> datetime | None:
    """Return when the number may get one more message, None if it may now."""
    return max((free_at for free_at in (found.hour, found.day) if free_at is not None), default=None)


def check_address(row: SmsMessage, found: Found) -> None:
    """Raise TooManySmsMessages if the caller's network has asked for enough."""
    free_at = found.address and _free_at("address_digest", row, PER_ADDRESS, found.now)
    free_at = free_at or (found.site and _free_at("site_digest", row, PER_ADDRESS.of_site(), found.now))
    if free_at is not None:
        words = _("Too many texts were asked for from your network. Try again {when}.")
        raise TooManySmsMessages(words.format(when=moments.until(free_at, found.now)))


def check_range(row: SmsMessage, found: Found) -> None:
    """Raise TooManySmsMessages if the number's block of numbers has used up its day's budget."""
    limit = Limit(settings.SMS_RANGE_BUDGET, RANGE_PERIOD)
    free_at = found.range and _free_at("range_digest", row, limit, found.now)
    if free_at is not None:
        log.error("no more SMS messages to a range of numbers today", number_range=row.range_digest[:12])
        words = _("We cannot text this number now. Use another number, or try again {when}.")
        if row.kind == Kind.RECEIPT:
            words = _("We cannot text this number now. Try again {when}.")
        raise TooManySmsMessages(words.format(when=moments.until(free_at, found.now)))


def _free_at(counted: str, row: SmsMessage, limit: Limit, now: datetime) -> datetime | None:
    """Return when one more message may follow those that led to no payment: some may have been paid just now."""
    if limit.maximum == 0:
        return now + limit.within
    is_alike = {f"{counted}__in": row.alike[counted]}
    alike = SmsMessage.objects.filter(**is_alike, created_at__gt=now - limit.within)
    times = budgets.unpaid(alike).order_by("-created_at").values_list("created_at", flat=True)
    deciding = times[limit.maximum - 1 : limit.maximum].first()
    return deciding and deciding + limit.within


def spend_budgets(row: SmsMessage, now: datetime) -> None:
    """Count the message against the day's budgets. Raises TooManySmsMessages if one is used up."""
    used_up = budgets.spend(row.merchant_id, now)
    if used_up is None:
        return
    log.error("no more SMS messages today", merchant=str(row.merchant_id))
    words = _("This shop may send no more texts today. Try again {when}.")
    if used_up == budgets.OF_ALL:
        words = _("We may send no more texts today. Try again {when}.")
    raise TooManySmsMessages(words.format(when=moments.until(budgets.tomorrow(now), now)))
