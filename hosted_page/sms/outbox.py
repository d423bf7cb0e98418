"""The outbox of SMS messages: rows that a pump sends, and the limits on how many there may be.

Rules sms.sealed, sms.address.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import phonenumbers
import structlog
from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from config.lib import batches, clock, crypto, quota, wakeup
from config.lib.quota import Limit
from config.lib.web import address as network
from hosted_page import moments
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import budgets

log = structlog.get_logger("hosted_page.sms.outbox")

SEND_SMS_MESSAGES = "hosted_page.tasks.send_sms_messages"
GAP = timedelta(seconds=30)  # between two codes to one number
PER_NUMBER = (Limit(5, timedelta(hours=1)), Limit(10, timedelta(days=1)))
PER_ADDRESS = Limit(300, timedelta(hours=1))
RANGE_DIGITS = 4  # by which numbers of a range differ: fraudsters who earn by SMS own numbers in blocks
RANGE_PERIOD = timedelta(days=1)
INVITATIONS = 20  # of one checkout, reminders not counted
Kind = SmsMessage.Kind


class TooManySmsMessages(Exception):
    """A limit is reached, and nothing is sent; the text says what to do."""


@dataclass(frozen=True)
class Asked:
    """An SMS message that is asked for. `phone` is E.164, `address` the caller's; it is not sent after `ends_at`."""

    kind: SmsMessage.Kind
    phone: str
    target: PaymentTarget
    body: str
    ends_at: datetime
    address: str


def put(asked: Asked, *, key: UUID | None = None) -> None:
    """Count an SMS message and queue it, to be sent within a second. `key` becomes its id.

    Call it in the transaction of what it is about. Raises TooManySmsMessages, and writes nothing then.
    """
    row = _row(asked, key)
    _check_country(asked.phone)
    _lock(row)
    row.created_at = row.due_at = now = clock.now()
    _check_number(row, now)
    _check_address(row, now)
    _check_range(row, now)
    _spend_budgets(row, now)
    row.save(force_insert=True)
    wakeup.after_commit(SEND_SMS_MESSAGES)


def put_for_lead(asked: Asked, *, key: UUID, is_lead: bool) -> None:
    """Queue a code, as `put` does, for somebody who comes back to a paid order: only the lead's number gets it.

    Nobody learns which number that is: all callers get the same answer, also when the number's limit is reached,
    and asking for other people's numbers uses up nothing of theirs. Raises TooManySmsMessages.
    """
    row = _row(asked, key)
    row.range_digest = ""  # not counted: nobody pays an order to earn by SMS messages
    _lock(row)
    row.created_at = row.due_at = now = clock.now()
    is_full = _number_free_at(row, now) is not None
    _check_address(row, now)
    if is_full or not is_lead:
        row.phone = row.body = row.due_at = None
        row.phone_digest, row.ended_at = "", now
    row.save(force_insert=True)
    wakeup.after_commit(SEND_SMS_MESSAGES)


def _row(asked: Asked, key: UUID | None) -> SmsMessage:
    row = SmsMessage(
        kind=asked.kind,
        merchant=asked.target.checkout.merchant,
        checkout_uuid=asked.target.checkout.pk,
        subject=asked.target.subject,
        phone=asked.phone,
        body=asked.body,
        phone_digest=digest(asked.phone),
        range_digest=crypto.keyed_digest("sms range", asked.phone[:-RANGE_DIGITS]),
        address_digest=crypto.keyed_digest("address", network.network(asked.address)),
        ends_at=asked.ends_at,
    )
    row.pk = key or row.pk
    return row


def digest(phone: str) -> str:
    """Return the digest by which a number's SMS messages are counted."""
    return crypto.keyed_digest("sms", phone)


def _lock(row: SmsMessage) -> None:
    parts = (row.phone_digest, row.range_digest, row.address_digest)
    quota.lock(*(f"sms:{part}" for part in parts if part))  # a returning lead's message has no range


def _check_country(phone: str) -> None:
    """Raise TooManySmsMessages for a number of a country to which we send nothing."""
    number = phonenumbers.parse(phone)
    country = phonenumbers.region_code_for_number(number) or phonenumbers.region_code_for_country_code(
        number.country_code or 0
    )
    if settings.SMS_COUNTRIES and country not in settings.SMS_COUNTRIES:
        raise TooManySmsMessages(_("We send no texts to this country. Use a number of another one."))


def _check_number(row: SmsMessage, now: datetime) -> None:
    codes = SmsMessage.objects.filter(phone_digest=row.phone_digest, kind__in=[Kind.CODE, Kind.RETURN])
    if row.kind == Kind.CODE and codes.filter(created_at__gt=now - GAP).exists():
        raise TooManySmsMessages(just_sent())
    free_at = _number_free_at(row, now)
    if free_at is not None:
        words = _("This number has had too many texts. Try again {when}, or use another number.")
        raise TooManySmsMessages(words.format(when=moments.until(free_at, now)))


def just_sent() -> str:
    """Return the error for somebody who asks for two codes at once."""
    return _("We have just sent a code. Wait half a minute, then ask again.")


def _number_free_at(row: SmsMessage, now: datetime) -> datetime | None:
    to_number = SmsMessage.objects.filter(phone_digest=row.phone_digest)
    times = [quota.free_at(to_number, limit, now) for limit in PER_NUMBER]
    return max((free_at for free_at in times if free_at is not None), default=None)


def _check_address(row: SmsMessage, now: datetime) -> None:
    from_address = SmsMessage.objects.filter(address_digest=row.address_digest)
    free_at = _free_at(from_address, PER_ADDRESS, now)
    if free_at is not None:
        words = _("Too many texts were asked for from your network. Try again {when}.")
        raise TooManySmsMessages(words.format(when=moments.until(free_at, now)))


def _check_range(row: SmsMessage, now: datetime) -> None:
    """Raise TooManySmsMessages if the number's block of numbers has used up its day's budget."""
    limit = Limit(settings.SMS_RANGE_BUDGET, RANGE_PERIOD)
    free_at = _free_at(SmsMessage.objects.filter(range_digest=row.range_digest), limit, now)
    if free_at is not None:
        log.error("no more SMS messages to a range of numbers today", number_range=row.range_digest[:12])
        words = _("We cannot text this number now. Use another number, or try again {when}.")
        raise TooManySmsMessages(words.format(when=moments.until(free_at, now)))


def _free_at(rows: QuerySet[SmsMessage], limit: Limit, now: datetime) -> datetime | None:
    """Return `quota.free_at` of the unpaid messages; looks for those paid just now only if the limit is reached."""
    counted = rows.filter(is_counted=True)
    return quota.free_at(counted, limit, now) and quota.free_at(budgets.unpaid(counted), limit, now)


def _spend_budgets(row: SmsMessage, now: datetime) -> None:
    free_at = budgets.spend_of_merchant(row.merchant, now)
    words = _("This shop has had all the texts that it may send today. Try again {when}.")
    if free_at is None:
        free_at = budgets.spend_of_all(now)
        words = _("We have sent all the texts that we may send today. Try again {when}.")
    if free_at is not None:
        log.error("no more SMS messages today", merchant=str(row.merchant_id))
        raise TooManySmsMessages(words.format(when=moments.until(free_at, now)))


def withdraw(keys: list[UUID], now: datetime) -> None:
    """End the waiting SMS messages with these ids, so that they are never sent."""
    waiting = SmsMessage.objects.filter(pk__in=keys, due_at__isnull=False)
    waiting.update(due_at=None, ended_at=now, phone=None, body=None)


def delete_old() -> None:
    """Delete SMS messages and codes, with their numbers, that no limit and no pay link can need any more."""
    before = clock.now() - settings.PAY_LINK_LIFETIME - timedelta(days=1)
    batches.delete(SmsMessage.objects.filter(created_at__lt=before))
    budgets.delete_old()
    batches.delete(SignInCode.objects.filter(pk__lt=clock.first_id(before)))
