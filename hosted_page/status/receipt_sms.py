"""Texts the link to the receipt to a payer, at most once (rule receipt.sms)."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _

from checkout.models import Checkout, Customer, PaymentRequest
from hosted_page import payer
from hosted_page.models import SmsMessage
from hosted_page.payment_target import PaymentTarget, absolute
from hosted_page.sms import outbox, safe_names
from hosted_page.sms.limits import TooManySmsMessages
from hosted_page.sms.outbox import MessageRequest
from payments import money, operator_stops

LIFE = timedelta(hours=1)  # after this time, an unsent message is never sent
NOT_ASKED, WAITING, SENT = "", "waiting", "sent"


@dataclass(frozen=True)
class Offer:
    """The offer on a page to text the link to the receipt.

    `number` is masked. `link` is the link in the message. `error` says why the last request was refused.
    """

    state: str
    action: str
    number: str
    link: str
    error: str


def receipt_offer(request: HttpRequest, target: PaymentTarget, error: str = "") -> Offer | None:
    """Return the offer for the signed-in payer, or None for anyone else."""
    customer_uuid = payer.customer_of(request, target.subject)
    if customer_uuid is None or not target.is_paid_by(customer_uuid):
        return None
    customer: Any = _matching_customers(customer_uuid, target.checkout.pk, target.subject).first()
    if customer is None or not customer.phone:
        return None
    state = SENT if customer.is_sent else WAITING if customer.is_waiting else NOT_ASKED
    return Offer(
        state, target.address("receipt"), f"•••• {customer.phone[-4:]}", _sign_in_link(target), error
    )


def _texts_sent(checkout_uuid: UUID, subject: UUID) -> QuerySet[SmsMessage]:
    return SmsMessage.objects.filter(
        checkout_uuid=checkout_uuid, subject=subject, kind=SmsMessage.Kind.RECEIPT
    )


def _matching_customers(person: UUID, checkout_uuid: UUID, subject: UUID) -> QuerySet[Customer]:
    texts = _texts_sent(checkout_uuid, subject)
    return Customer.objects.filter(pk=person).annotate(
        is_waiting=Exists(texts.filter(ended_at=None)), is_sent=Exists(texts.exclude(sent_at=None))
    )


def _sign_in_link(target: PaymentTarget) -> str:
    """Return the URL at which the payer signs in and then sees the receipt. For a share, it is always the pay link."""
    return absolute(PaymentTarget(target.checkout, target.share).sign_in_path())


def request_receipt(target: PaymentTarget, address: str) -> str:
    """Queue the message, unless it was already sent or is waiting to be sent.

    Return the reason if the message was refused, otherwise "". `address` is the caller's network address.
    """
    try:
        with transaction.atomic(durable=True):
            _queue_receipt(target.checkout.pk, target.share.pk if target.share else None, address)
    except TooManySmsMessages as error:
        return str(error)
    except (operator_stops.MerchantSuspended, operator_stops.AllStopped):
        return _("We cannot send texts for this shop now. Print the receipt, or try again later.")
    return ""


def _queue_receipt(checkout_uuid: UUID, share_uuid: UUID | None, address: str) -> None:
    checkout = Checkout.objects.locked(checkout_uuid)
    share = PaymentRequest.objects.get(pk=share_uuid) if share_uuid else None
    if share is not None:
        share.checkout = checkout
    target = PaymentTarget(checkout, share)
    earlier_texts = _texts_sent(checkout_uuid, target.subject).filter(
        Q(ended_at=None) | Q(sent_at__isnull=False)
    )
    if target.paid_by_uuid is None or earlier_texts.exists():
        return
    operator_stops.check(checkout.merchant)
    person = target.person(target.paid_by_uuid)
    if person.phone:
        ends_at = checkout.locked_at + LIFE
        outbox.queue_message(
            MessageRequest(
                SmsMessage.Kind.RECEIPT, person.phone, target, _words_of_text(target), ends_at, address
            )
        )


def _words_of_text(target: PaymentTarget) -> str:
    return _("Your receipt from {shop}, {amount}: {link}").format(
        shop=safe_names.safe_shop_name(target.checkout.merchant),
        amount=money.display_for_payer(target.amount, target.checkout.currency),
        link=_sign_in_link(target),
    )
