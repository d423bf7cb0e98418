"""Sends and checks sign-in codes, each for one number, one checkout or share, and one browser (rules sign_in.*)."""

import secrets
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Left, Now
from django.utils.translation import gettext as _

from checkout import expiry, mate_shares
from checkout.models import Checkout, Customer, PaymentRequest
from config.lib import crypto, quota
from config.lib.crypto import DIGEST_LETTERS, FindableTextField
from config.lib.database import queries
from hosted_page import payer, statements
from hosted_page.models import PayerSignIn, SignInCode, SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import limits, outbox, safe_names, senders
from hosted_page.sms.limits import CodeJustRequested, TooManySmsMessages
from hosted_page.sms.outbox import MessageRequest
from payments import operator_stops

# The last line of an SMS message names this host, so that a phone fills in the code only on this host's pages.
_HOST = urlsplit(settings.CHECKOUT_PAGE_URL).hostname
CODE_LIFE = timedelta(minutes=10)
MAX_TRIES = 5
_PURPOSE = "sign-in"  # purpose of the keyed digest of a code
CODES_PER_SUBJECT, CODES_WITHIN = 5, timedelta(days=1)


class NothingToSignInFor(Exception):
    """No code is sent, because the order or share cannot be paid and has not been paid."""


class CodeEnded(Exception):
    """The code cannot be entered any more, because it was used, is too old, or was entered wrongly too often."""


class WrongCode(Exception):
    """The entered digits are not the code."""

    def __init__(self, tries_left: int) -> None:
        super().__init__(f"{tries_left} tries left")
        self.tries_left = tries_left


class SentCode(NamedTuple):
    """A queued code. `shown_code` has the digits of the code if the page shows them, otherwise it is ""."""

    code: SignInCode
    shown_code: str


def send_code(target: PaymentTarget, phone: str, browser: str, address: str) -> SentCode:
    """Queue a new code for a phone number, and end earlier codes of this browser. A worker sends the code.

    If the order or share is paid, only the number that paid gets an SMS message. The result does not show
    whether this number gets one. Raises TooManySmsMessages, NothingToSignInFor,
    operator_stops.MerchantSuspended, operator_stops.AllStopped. Rule sign_in.payer_returns.
    """
    digits = f"{secrets.randbelow(10**6):06d}"
    with transaction.atomic(durable=True):
        target, now = _lock_target(target)
        operator_stops.check(target.checkout.merchant)
        _check_code_limit(target, phone, now)
        _end_earlier_codes(target, browser, now)
        code = SignInCode.objects.create(
            subject=target.subject,
            phone=phone,
            browser_digest=crypto.digest(browser),
            code_digest=crypto.keyed_digest(_PURPOSE, _code_with_subject(target.subject, digits)),
            created_at=now,
            expires_at=now + CODE_LIFE,
        )
        is_sent = _queue_code(target, code, digits, address)
    return SentCode(code, digits if is_sent and senders.current_sender().shows_codes else "")


def _lock_target(target: PaymentTarget) -> tuple[PaymentTarget, datetime]:
    """Lock the checkout and read the target again. Return the target and the time.

    Raises NothingToSignInFor.
    """
    checkout = Checkout.objects.locked(target.checkout.pk)
    share = PaymentRequest.every.get(pk=target.share.pk) if target.share else None
    now = checkout.locked_at
    expiry.expire_if_due(checkout, now)
    if share is not None:
        share.checkout = checkout
        mate_shares.expire_if_late(share, now)
    locked_target = replace(target, checkout=checkout, share=share)
    if not locked_target.may_sign_in:
        raise NothingToSignInFor
    return locked_target, now


def _end_earlier_codes(target: PaymentTarget, browser: str, now: datetime) -> None:
    parameters = {"now": now, "subject": target.subject, "browser": crypto.digest(browser)}
    if ended := [row[0] for row in queries.rows(statements.END_SIGN_IN_CODES, parameters)]:
        outbox.withdraw(ended, now)


def _queue_code(target: PaymentTarget, code: SignInCode, digits: str, address: str) -> bool:
    """Queue the SMS message with the code. Return whether it is sent to this number. Rule sms.code_words."""
    words = _("{code} is your code for {shop}. Do not share it.")
    sentence = words.format(code=digits, shop=safe_names.safe_shop_name(target.checkout.merchant))
    body = f"{sentence}\n\n@{_HOST} #{digits}"
    kind = SmsMessage.Kind.RETURN if target.is_only_for_payer else SmsMessage.Kind.CODE
    message = MessageRequest(kind, code.phone, target, body, code.expires_at, address)
    if kind == SmsMessage.Kind.CODE:
        outbox.queue_message(message, key=code.pk)
        return True
    paid_by = target.paid_by_uuid
    is_payer = paid_by is not None and target.person(paid_by).phone == code.phone
    outbox.queue_code_for_payer(message, key=code.pk, is_payer=is_payer)
    return is_payer


def _check_code_limit(target: PaymentTarget, phone: str, now: datetime) -> None:
    """Raise TooManySmsMessages if too many codes were requested for the order or share.

    If the order or share is paid, requests for other numbers do not count, so that they cannot lock out its
    payer. The same is true at a share's own link for the number that the link was sent to. At the group link and at
    a replaced link, all requests count, so that the answer does not reveal this number. Rules sign_in.limits,
    sign_in.payer_returns.
    """
    since = now - CODES_WITHIN
    if target.is_only_for_payer:
        codes_of_number = _codes_since(target.subject, since).filter(
            phone=phone, created_at__gt=target.paid_at
        )
        last_code = (
            codes_of_number.filter(created_at__gt=now - limits.CODE_INTERVAL).order_by("-created_at").first()
        )
        if last_code is not None:
            raise CodeJustRequested((last_code.created_at + limits.CODE_INTERVAL - now).total_seconds())
        count = codes_of_number.count()
    elif _is_of_own_link(target, phone):
        count = _codes_since(target.subject, since).filter(phone=phone).count()
    else:
        count = _codes_since(target.subject, since)[:CODES_PER_SUBJECT].count()
    if count < CODES_PER_SUBJECT:
        return
    if target.share is None and target.is_payable:
        raise TooManySmsMessages(_("We cannot send more codes for this link. Ask the shop for a new link."))
    raise TooManySmsMessages(_("We cannot send more codes for this page today. Try again tomorrow."))


def _is_of_own_link(target: PaymentTarget, phone: str) -> bool:
    """Return whether the person came through a share's current pay link, which was sent to this number."""
    is_at_other_link = bool(target.group or target.replaced)
    return target.share is not None and target.share.phone == phone and not is_at_other_link


def _codes_since(subject: UUID, since: datetime) -> QuerySet[SignInCode]:
    return SignInCode.objects.filter(subject=subject, created_at__gt=since)


def waiting_code(subject: UUID, browser: str) -> SignInCode | None:
    """Return the code that this browser can enter for the checkout or share, or None if there is no such code.

    `read_at` is the database's time. `is_lost` is true if the message with the code has ended, but might not have been
    sent. For a payer who returns, `is_lost` is always false, because a true value would show that this number has not
    paid.
    """
    return _codes_of_browser(subject, crypto.digest(browser)).first()


def _codes_of_browser(subject: UUID, browser_digest: str) -> QuerySet[SignInCode]:
    rows = SignInCode.objects.filter(subject=subject, browser_digest=browser_digest, used_at=None)
    lost = SmsMessage.objects.filter(pk=OuterRef("pk"), kind=SmsMessage.Kind.CODE, sent_at=None)
    rows = rows.annotate(**{"read_at": Now(), "is_lost": Exists(lost.exclude(ended_at=None))})
    return rows.filter(expires_at__gt=Now()).order_by("-created_at")


def has_waiting_code(subject: UUID, browser: str) -> bool:
    """Return whether this browser has requested a code for the subject that it can still enter."""
    code = waiting_code(subject, browser)
    return code is not None and can_be_tried(code)


def can_be_tried(code: SignInCode) -> bool:
    """Return whether the code can still be tried. If not, the page does not ask for its digits."""
    return code.tries < MAX_TRIES


class EnteredCode(NamedTuple):
    """The person who entered the right code, and their sign-in."""

    person: Customer
    sign_in: PayerSignIn


def verify(code: SignInCode, digits: str) -> EnteredCode:
    """Return the person who entered the waiting code, and their new sign-in.

    Each attempt counts, even if several requests run at the same time. Raises WrongCode, CodeEnded.
    """
    is_right = crypto.is_keyed_digest(code.code_digest, _PURPOSE, _code_with_subject(code.subject, digits))
    with transaction.atomic(durable=True):
        parameters = {"id": code.pk, "is_right": is_right, "maximum": MAX_TRIES}
        row = queries.row(statements.COUNT_SIGN_IN_TRY, parameters)
        if row is None:
            raise CodeEnded
        if is_right:
            person = person_of(code.phone)
            return EnteredCode(person, payer.begin_sign_in(code.subject, person.pk, is_proven=True))
    tries_left = MAX_TRIES - row[0]
    if tries_left <= 0:
        raise CodeEnded
    raise WrongCode(tries_left)


def person_of(phone: str) -> Customer:
    """Return the person with a verified number. If the number is new, create the person.

    While LOOKUP_KEY is being replaced, two processes could store the same number with different digests, and
    no constraint would prevent it. Each process therefore takes a lock.
    """
    digest, *former_digests = FindableTextField.digests(phone)
    if former_digests:
        with transaction.atomic(savepoint=True):
            quota.lock(
                f"customer:{digest}", *(f"customer:{former_digest}" for former_digest in former_digests)
            )
            return Customer.objects.filter(phone=phone).first() or Customer.objects.create(phone=phone)
    person = _of_number(digest).first()
    if person is not None:
        return person
    try:
        with transaction.atomic(savepoint=True):
            return Customer.objects.create(phone=phone)
    except IntegrityError:  # another process created the person first
        return _of_number(digest).get()


def _of_number(digest: str) -> QuerySet[Customer]:
    return Customer.objects.alias(digest=Left("phone", DIGEST_LETTERS)).filter(digest=digest)


def _code_with_subject(subject: UUID, digits: str) -> str:
    return f"{subject}:{digits}"
