"""Queues text messages that notify leads about their mates' shares (rules lead.told, lead.language).

Each notification is a row (LeadNotification), written in the transaction of the change that it reports.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import translation
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from checkout import current_checkouts
from checkout.models import Checkout, LeadNotification, PaymentRequest
from checkout.states import SHARE_OUTSTANDING, SHARE_PAID, ShareStatus, Status
from config.lib import clock, quota
from hosted_page import link_deadline
from hosted_page.models import SmsMessage
from hosted_page.payment_target import PaymentTarget, absolute
from hosted_page.sms import outbox, safe_names
from hosted_page.sms.limits import TooManySmsMessages
from hosted_page.sms.outbox import MessageRequest
from payments import disputes, money, operator_stops

MAX_PER_RUN = 100  # maximum notifications per run
PER_CHECKOUT = 4
LIFE = timedelta(hours=1)  # after this time, an unsent message is never sent
# How long to wait before an order that is being refunded or disputed is checked again.
PAUSE_RETRY_AFTER = timedelta(hours=1)
Kind = LeadNotification.Kind
# For each kind of message, the status that its share must have for the message to be true.
STATUS_OF_SHARE: dict[str, ShareStatus] = {
    Kind.DECLINED: ShareStatus.DECLINED,
    Kind.NOT_TAKEN: ShareStatus.OPEN,
}


def queue_notifications() -> None:
    """Queue the messages for all notifications that are due now."""
    for _number in range(MAX_PER_RUN):
        if not _process_next():
            return


def _process_next() -> bool:
    """Process the notification that has been due longest. Return False if no notification is due."""
    with transaction.atomic(durable=True):
        rows = LeadNotification.objects.filter(ended_at=None, due_at__lte=Now()).order_by("due_at")
        notification = rows.select_for_update(of=("self",), no_key=True, skip_locked=True).first()
        if notification is None:
            return False
        now = clock.now()
        checkout = Checkout.objects.select_related("merchant", "lead").get(pk=notification.checkout_id)
        shares = current_checkouts.shares_of(checkout)
        next_check_at = _next_check_at(notification, checkout, shares, now)
        if next_check_at is not None:
            notification.due_at = next_check_at
        else:
            notification.ended_at = now
            _queue_text(notification, checkout, shares, now)
        notification.save(update_fields=["due_at", "ended_at"])
    return True


def _next_check_at(
    notification: LeadNotification, checkout: Checkout, shares: list[PaymentRequest], now: datetime
) -> datetime | None:
    """Return when to check the notification again, or None if it is to be processed now.

    While the order is paused, the notification is checked again after an hour. A notification about the end
    of the links is checked again on their last day, because a pause or a new link can postpone that day.
    """
    if _is_paused(notification, checkout):
        return now + PAUSE_RETRY_AFTER
    end = link_deadline.ends_at(shares)
    if notification.kind != Kind.LINKS_END or end is None or end - link_deadline.LAST_DAY <= now:
        return None
    return end - link_deadline.LAST_DAY


def _is_paused(notification: LeadNotification, checkout: Checkout) -> bool:
    """Return whether the notification must wait until the order's dispute or refund has ended.

    An open dispute stops the links, so a message must not ask the lead to do something that needs them. While
    the order is being refunded, no message is sent. If the refund fails, the waiting messages are sent.
    """
    is_disputed = notification.kind != Kind.ALL_PAID and disputes.has_open_dispute(checkout.pk)
    return is_disputed or checkout.status == Status.REFUNDING


def _queue_text(
    notification: LeadNotification, checkout: Checkout, shares: list[PaymentRequest], now: datetime
) -> None:
    """Queue the message if it is still true, and if the limits and the order's maximum allow another message."""
    with translation.override(checkout.language or settings.LANGUAGE_CODE):
        body = _write_text(notification, checkout, shares)
    lead, target = checkout.lead, PaymentTarget(checkout)
    if not body or lead is None or not lead.phone or _has_reached_maximum(checkout):
        return
    try:
        operator_stops.check(checkout.merchant)
        # No person requested this message, so it has no network address. The limits count the order's id instead.
        message = MessageRequest(SmsMessage.Kind.LEAD, lead.phone, target, body, now + LIFE, str(checkout.pk))
        with transaction.atomic(savepoint=True):
            outbox.queue_message(message, key=notification.pk)
    except (TooManySmsMessages, operator_stops.MerchantSuspended, operator_stops.AllStopped):
        return


def _has_reached_maximum(checkout: Checkout) -> bool:
    """Return whether the lead has got, or might have got, the maximum number of messages for the order.

    Messages that ended before they were claimed do not count. A lock makes the order's other notifications
    wait until this transaction ends, so that each message is counted.
    """
    quota.lock(f"told:{checkout.pk}")
    texts = SmsMessage.objects.filter(checkout_uuid=checkout.pk, kind=SmsMessage.Kind.LEAD)
    return texts.exclude(ended_at__isnull=False, claimed_at=None).count() >= PER_CHECKOUT


def _write_text(notification: LeadNotification, checkout: Checkout, shares: list[PaymentRequest]) -> str:
    """Return the text of the message, or "" if the notification is no longer true."""
    reported_shares = _shares_in_text(notification, shares) if _is_current(notification, checkout) else []
    if not reported_shares:
        return ""
    is_about_one_share = notification.kind in STATUS_OF_SHARE
    name = safe_names.safe_name(reported_shares[0].shown_name) if is_about_one_share else ""
    pattern = _text_pattern(notification, is_every_share=len(reported_shares) == len(shares))
    return _fill_in(pattern, checkout, reported_shares, name) + (
        f"#{link_deadline.ID}" if notification.kind == Kind.LINKS_END else ""
    )


def _text_pattern(notification: LeadNotification, *, is_every_share: bool) -> str:
    """Return the text of the message, with the names of its values in braces."""
    match notification.kind:
        case Kind.DECLINED:
            return _("{name} said no to {amount} at {shop}. Ask again or cover it: {link}")
        case Kind.NOT_TAKEN:
            return _(
                "The share of {name} at {shop}, {amount}, could not be taken. {name} can try again: {link}"
            )
        case Kind.ALL_IN:
            return _("Everyone is in at {shop}, {amount} in total. You can pay now: {link}")
        case Kind.ALL_PAID if is_every_share:
            return _("All your mates have paid their shares at {shop}, {amount} in total: {link}")
        case Kind.ALL_PAID:
            return _("Your mates have paid {amount} at {shop}. No more shares are due: {link}")
        case _:
            return _(
                "{amount} at {shop} is not paid yet, and the links expire in a day. Remind your mates: {link}"
            )


def _is_current(notification: LeadNotification, checkout: Checkout) -> bool:
    """Return whether the notification can be true for an order of this status."""
    if notification.kind == Kind.ALL_IN:
        return checkout.status == Status.CREATED
    return checkout.status == Status.CAPTURED or (
        notification.kind == Kind.DECLINED and checkout.status == Status.CREATED
    )


def _shares_in_text(notification: LeadNotification, shares: list[PaymentRequest]) -> list[PaymentRequest]:
    """Return the shares that the message is about.

    Return an empty list if the notification is no longer true, or if a dispute has paused the links that the
    message needs.
    """
    if notification.kind != Kind.ALL_PAID and disputes.blocking_dispute(notification.checkout_id) is not None:
        return []
    if notification.kind in STATUS_OF_SHARE:
        status = STATUS_OF_SHARE[notification.kind]
        return [share for share in shares if share.pk == notification.share_uuid and share.status == status]
    if notification.kind == Kind.ALL_IN:
        outstanding = [share for share in shares if share.status in SHARE_OUTSTANDING]
        return outstanding if all(share.status == ShareStatus.PLEDGED for share in outstanding) else []
    if notification.kind == Kind.ALL_PAID:
        uncancelled = [share for share in shares if share.status != ShareStatus.CANCELLED]
        return uncancelled if all(share.status in SHARE_PAID for share in uncancelled) else []
    return [share for share in shares if share.status == ShareStatus.OPEN]


def _fill_in(pattern: str, checkout: Checkout, reported_shares: list[PaymentRequest], name: str) -> str:
    return pattern.format(
        name=name or _("A mate"),
        amount=money.display_for_payer(sum(share.amount for share in reported_shares), checkout.currency),
        shop=safe_names.safe_shop_name(checkout.merchant),
        link=absolute(PaymentTarget(checkout).sign_in_path()),
    )


def is_wanted(message: SmsMessage) -> bool:
    """Return whether a message to a lead is still true.

    If the same event has happened again, return False, because a newer message reports it.
    """
    notification = LeadNotification.objects.select_related("checkout").filter(pk=message.pk).first()
    if notification is None or not _is_current(notification, notification.checkout):
        return False
    return bool(_shares_in_text(notification, current_checkouts.shares_of(notification.checkout)))


def requeue(message: SmsMessage) -> None:
    """Requeue the notification for an unsent message if the order is paused or the notification is true.

    The notification can be true again because a pause has just ended. A notification has the same id as its
    message. The next message is a new row, so the notification gets a new id.
    """
    notification = LeadNotification.objects.select_related("checkout").filter(pk=message.pk).first()
    if notification is not None and (_is_paused(notification, notification.checkout) or is_wanted(message)):
        rows = LeadNotification.objects.filter(pk=notification.pk)
        rows.update(id=uuid7(), due_at=clock.now() + PAUSE_RETRY_AFTER, ended_at=None)
