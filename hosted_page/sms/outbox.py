"""Queues SMS messages. The limits decide whether a row is written, and a pump sends the rows (rule sms.sealed)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from config.lib import batches, clock, crypto, quota, wakeup
from config.lib.web import address as network
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import budgets, limits

SEND_SMS_MESSAGES = "hosted_page.tasks.send_sms_messages"
Kind = SmsMessage.Kind
# A text with a character outside GSM-7 is split into parts of 67 characters instead of 160. Without these
# replacements, no-break spaces in amounts and curly apostrophes in names would have this effect. Rule sms.letters.
PLAIN = str.maketrans({"\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " ", "’": "'"})


@dataclass(frozen=True)
class MessageRequest:
    """A requested SMS message.

    `phone` is an E.164 number, and `address` is the network address that sent the request. After `ends_at`,
    the message is not sent any more.
    """

    kind: SmsMessage.Kind
    phone: str
    target: PaymentTarget
    body: str
    ends_at: datetime
    address: str


def queue_message(message: MessageRequest, *, key: UUID | None = None) -> None:
    """Count an SMS message and queue it, so that it is sent within a second.

    `key` becomes the id of the message. Call this in the transaction that makes the change that the message
    reports. Raises TooManySmsMessages, and then writes no row.
    """
    row = _new_message(message, key)
    limits.check_country(message.phone)
    limits.check_stopped(row)
    _lock(row)
    state = limits.read_limits(row)
    row.created_at = row.due_at = state.now
    limits.check_number(row, state)
    limits.check_address(row, state)
    limits.check_range(row, state)
    limits.spend_budgets(row, state.now)
    row.save(force_insert=True)
    wakeup.wake_after_commit(SEND_SMS_MESSAGES)


def queue_code_for_payer(message: MessageRequest, *, key: UUID, is_payer: bool) -> None:
    """Queue a code for a person who returns to a paid order or share. Works like `queue_message`.

    Only the number that paid gets the code, and no caller can find out which number paid. The result is the same
    for every number, even if its limit is reached or it got a code just now. A request for a number that did not
    pay does not count against that number's limits. Raises TooManySmsMessages if the service sends no texts to the
    country, or if the limit for the caller's address is reached. Both checks apply to every number.
    """
    row = _new_message(message, key)
    limits.check_country(message.phone)
    # The range limit does not apply here. It is directed against fraudsters, who do not pay orders.
    row.range_digest, row.alike["range_digest"] = "", []
    _lock(row)
    state = limits.read_limits(row)
    row.created_at = row.due_at = state.now
    is_full = (state.code or limits.number_free_at(state)) is not None
    limits.check_address(row, state)
    if is_full or not is_payer:
        row.phone = row.body = row.due_at = None
        row.phone_digest, row.ended_at = "", state.now
    row.save(force_insert=True)
    wakeup.wake_after_commit(SEND_SMS_MESSAGES)


def _new_message(message: MessageRequest, key: UUID | None) -> SmsMessage:
    alike = {
        "phone_digest": number_digests(message.phone),
        "range_digest": crypto.keyed_digests("sms range", message.phone[: -limits.RANGE_DIGITS]),
        **network.caller_digests("address", message.address),
    }
    row = SmsMessage(
        kind=message.kind,
        merchant=message.target.checkout.merchant,
        checkout_uuid=message.target.checkout.pk,
        subject=message.target.subject,
        phone=message.phone,
        body=message.body.translate(PLAIN),
        ends_at=message.ends_at,
        **network.first_digests(alike),
    )
    row.alike = alike
    row.pk = key or row.pk
    return row


def number_digest(phone: str) -> str:
    """Return the digest by which the SMS messages of a number are counted. New rows store it."""
    return number_digests(phone)[0]


def number_digests(phone: str) -> list[str]:
    """Return all digests by which the SMS messages of a number are counted. New rows store the first one."""
    return crypto.keyed_digests("sms", phone)


def _lock(row: SmsMessage) -> None:
    quota.lock_digests("sms", *(part for parts in row.alike.values() for part in parts))


def withdraw(keys: list[UUID], now: datetime) -> None:
    """End the waiting SMS messages with these ids, so that they are never sent."""
    waiting = SmsMessage.objects.filter(pk__in=keys, due_at__isnull=False)
    waiting.update(due_at=None, ended_at=now, phone=None, body=None)


def delete_old() -> None:
    """Delete old SMS messages and codes, with their numbers, if no limit and no pay link needs them any more."""
    oldest_needed = clock.now() - settings.PAY_LINK_LIFETIME - timedelta(days=1)
    for model in (SmsMessage, SignInCode):
        batches.delete(model.objects.filter(pk__lt=clock.first_id(oldest_needed)))
    budgets.delete_old()
