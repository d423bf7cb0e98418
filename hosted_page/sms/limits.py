"""Checks the limits on SMS messages: per number, address, number range, order and day.

Call the checks in the transaction that writes the message, after the outbox has locked the counted digests.
Rules sms.address, sign_in.limits.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import structlog
from django.conf import settings
from django.utils.translation import gettext as _

from config.lib import quota
from config.lib.database import queries
from config.lib.quota import Limit
from hosted_page import statements, waiting_times
from hosted_page.models import SmsMessage
from hosted_page.sms import budgets, countries, stopped_numbers

log = structlog.get_logger("hosted_page.sms.limits")

CODE_INTERVAL = timedelta(seconds=30)  # shortest time between two codes to one number
PER_NUMBER = (Limit(5, timedelta(hours=1)), Limit(10, timedelta(days=1)))
PER_ADDRESS = Limit(300, timedelta(hours=1))
# The numbers of a range differ only in this many last digits. The limit is needed because some fraudsters own
# whole number ranges and earn money from each text to them.
RANGE_DIGITS = 4
RANGE_PERIOD = timedelta(days=1)
INVITATIONS = 20  # per checkout; reminders do not count
Kind = SmsMessage.Kind
CODES = SmsMessage.CODES


class TooManySmsMessages(Exception):
    """The message is not sent, because a limit is reached. The text of the exception says what the person can do."""


class CodeJustRequested(TooManySmsMessages):
    """A code was requested less than 30 seconds ago. The next one can be requested after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(_("A code was requested just now. Wait 30 seconds, then ask again."))
        self.seconds = max(1, math.ceil(seconds))


class CountryNotServed(TooManySmsMessages):
    """The service sends no texts to the number's country, so only a different number can get one."""


def check_country(phone: str) -> None:
    """Raise CountryNotServed if the service sends no texts to the number's country."""
    if settings.SMS_COUNTRIES and countries.country_of(phone) not in settings.SMS_COUNTRIES:
        raise CountryNotServed(_("We don’t send texts to this country. Use a number from another country."))


def check_stopped(row: SmsMessage) -> None:
    """Raise TooManySmsMessages if the number has stopped texts and the message is not a code (rule sms.stop)."""
    if row.kind not in CODES and stopped_numbers.has_stopped(row.alike["phone_digest"]):
        if row.kind == Kind.RECEIPT:
            raise TooManySmsMessages(
                _("This number has stopped our texts, except for codes. Print the receipt.")
            )
        raise TooManySmsMessages(_("This number has stopped our texts. Send the link yourself."))


class LimitState(NamedTuple):
    """The current time, and for each limit the time when it allows the next message. None means now."""

    now: datetime
    code: datetime | None
    hour: datetime | None
    day: datetime | None
    address: datetime | None
    site: datetime | None
    range: datetime | None


def read_limits(row: SmsMessage) -> LimitState:
    """Return the state of the limits before this message is counted."""
    limits = {"code": Limit(1, CODE_INTERVAL), "hour": PER_NUMBER[0], "day": PER_NUMBER[1]}
    limits |= {"address": PER_ADDRESS, "site": PER_ADDRESS.of_site()}
    limits |= {"range": Limit(settings.SMS_RANGE_BUDGET, RANGE_PERIOD)}
    keys = len(row.alike["phone_digest"])
    ranges: Sequence[str | None] = row.alike["range_digest"] or [None] * keys  # None matches no row
    parameters: dict[str, Any] = {
        **quota.parameters("phone_digest", row.alike["phone_digest"]),
        **quota.parameters("address_digest", row.alike["address_digest"]),
        **quota.parameters("site_digest", row.alike["site_digest"]),
        **quota.parameters("range_digest", ranges),
        **{f"{name}_within": limit.within for name, limit in limits.items()},
        **{f"{name}_before": max(0, limit.maximum - 1) for name, limit in limits.items()},
    }
    now, *deciding_times = queries.row(statements.compose_sms_limits(keys), parameters)
    free_at = [
        now + limit.within if limit.maximum == 0 else at and at + limit.within
        for at, limit in zip(deciding_times, limits.values(), strict=True)
    ]
    return LimitState(now, *free_at)


def check_number(row: SmsMessage, state: LimitState) -> None:
    """Raise TooManySmsMessages if the number got a code just now, or has reached its limit."""
    if row.kind == Kind.CODE and state.code:
        raise CodeJustRequested((state.code - state.now).total_seconds())
    free_at = number_free_at(state)
    if free_at is not None:
        words = _("We cannot send more texts to this number now. Try again {when}, or use another number.")
        # Only the number that paid can get the receipt, so the text does not suggest a different number.
        if row.kind == Kind.RECEIPT:
            words = _("We cannot send more texts to this number now. Try again {when}.")
        raise TooManySmsMessages(words.format(when=waiting_times.time_until(free_at, state.now)))


def number_free_at(state: LimitState) -> datetime | None:
    """Return when the number can get its next message, or None if it can get one now."""
    return max((free_at for free_at in (state.hour, state.day) if free_at is not None), default=None)


def check_address(row: SmsMessage, state: LimitState) -> None:
    """Raise TooManySmsMessages if the network that sent the request has reached its limit."""
    free_at = state.address and _free_at("address_digest", row, PER_ADDRESS, state.now)
    free_at = free_at or (state.site and _free_at("site_digest", row, PER_ADDRESS.of_site(), state.now))
    if free_at is not None:
        words = _("Too many texts were requested from your network. Try again {when}.")
        raise TooManySmsMessages(words.format(when=waiting_times.time_until(free_at, state.now)))


def check_range(row: SmsMessage, state: LimitState) -> None:
    """Raise TooManySmsMessages if the range of the number has used up its daily budget."""
    limit = Limit(settings.SMS_RANGE_BUDGET, RANGE_PERIOD)
    free_at = state.range and _free_at("range_digest", row, limit, state.now)
    if free_at is not None:
        log.error("no more SMS messages to a range of numbers today", number_range=row.range_digest[:12])
        words = _("We cannot text this number now. Use another number, or try again {when}.")
        if row.kind == Kind.RECEIPT:
            words = _("We cannot text this number now. Try again {when}.")
        raise TooManySmsMessages(words.format(when=waiting_times.time_until(free_at, state.now)))


def _free_at(digest_field: str, row: SmsMessage, limit: Limit, now: datetime) -> datetime | None:
    """Return when the next message is possible, or None if it is possible now.

    `read_limits` also counts messages of orders and shares that have just been paid. If it reports a reached
    limit, this function therefore checks the limit again without these messages.
    """
    if limit.maximum == 0:
        return now + limit.within
    filters = {f"{digest_field}__in": row.alike[digest_field]}
    messages = SmsMessage.objects.filter(**filters, created_at__gt=now - limit.within)
    times = budgets.counted_messages(messages).order_by("-created_at").values_list("created_at", flat=True)
    deciding_time = times[limit.maximum - 1 : limit.maximum].first()
    return deciding_time and deciding_time + limit.within


def spend_budgets(row: SmsMessage, now: datetime) -> None:
    """Count the message against the day's budgets. Raises TooManySmsMessages if a budget is used up."""
    budget = budgets.spend(row.merchant_id, now)
    if budget is None:
        return
    log.error("no more SMS messages today", merchant=str(row.merchant_id))
    words = _("We cannot send more texts for this shop today. Try again {when}.")
    if budget == budgets.TOTAL_BUDGET:
        words = _("We cannot send more texts today. Try again {when}.")
    raise TooManySmsMessages(words.format(when=waiting_times.time_until(budgets.next_day_start(now), now)))
