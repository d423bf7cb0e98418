"""Queues SMS messages to mates with the links of their shares (rule sms.invitation).

The first message is an invitation. After it, the lead can send one reminder a day.
"""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from checkout import mate_shares
from checkout.models import PaymentRequest
from checkout.states import ShareStatus, Status
from config.lib import clock
from hosted_page.models import SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import limits, outbox, safe_names, stopped_numbers
from hosted_page.sms.limits import TooManySmsMessages
from hosted_page.sms.outbox import MessageRequest
from payments import disputes, money, operator_stops

TO_MATES = (SmsMessage.Kind.INVITATION, SmsMessage.Kind.REMINDER)

REMINDER_INTERVAL = timedelta(days=1)
LIFE = timedelta(hours=1)  # after this time, an unsent message is never sent


class CannotSendNow(Exception):
    """The share is not open or is paused, or its mate got an SMS message less than a day ago."""


def send(share_uuid: UUID, *, phone: str, address: str) -> None:
    """Queue an SMS message to a mate with the link of their share.

    `phone` is an E.164 number. If it is "", the message goes to the number that got the link before. Raises
    CannotSendNow, TooManySmsMessages, operator_stops.MerchantSuspended, operator_stops.AllStopped.
    """
    with transaction.atomic(durable=True):
        share, checkout = mate_shares.lock_share(share_uuid)
        now = clock.now()
        recipient = phone or share.phone
        if not recipient or not _is_open(share) or (share.next_reminder_at and now < share.next_reminder_at):
            raise CannotSendNow
        invitations = SmsMessage.objects.filter(checkout_uuid=checkout.pk, kind=SmsMessage.Kind.INVITATION)
        kind = SmsMessage.Kind.REMINDER if recipient == share.phone else SmsMessage.Kind.INVITATION
        if kind == SmsMessage.Kind.INVITATION and invitations.count() >= limits.INVITATIONS:
            raise TooManySmsMessages(_("We cannot send more texts for this order. Send the link yourself."))
        operator_stops.check(checkout.merchant)
        target, ends_at = PaymentTarget(checkout, share), min(now + LIFE, share.expires_at or now)
        body = f"{invitation_text(share)} {_stop_sentence(recipient)}"
        outbox.queue_message(MessageRequest(kind, recipient, target, body, ends_at, address))
        # Until the text to the new number is sent, only the earlier number has the link. The share therefore keeps the
        # earlier number until then.
        share.phone, share.next_reminder_at = share.phone or recipient, now + REMINDER_INTERVAL
        share.save(update_fields=["phone", "next_reminder_at"])


def _stop_sentence(phone: str) -> str:
    """Return the last sentence of a message, with the link that stops further messages (rule sms.stop)."""
    return _("No more texts: {link}").format(link=stopped_numbers.stop_link(outbox.number_digest(phone)))


def _is_open(share: PaymentRequest) -> bool:
    """Return whether the share can be paid now.

    The share must be open, its order must be captured, and no dispute may be open or lost.
    """
    is_open = share.status == ShareStatus.OPEN and share.checkout.status == Status.CAPTURED
    return is_open and disputes.blocking_dispute(share.checkout_id) is None


def is_wanted(message: SmsMessage) -> bool:
    """Return whether the share can still be paid at the link in the message."""
    share = PaymentRequest.objects.select_related("checkout").filter(pk=message.subject).first()
    return share is not None and _is_open(share) and _has_link(message, share)


def record_sent(message: SmsMessage) -> None:
    """Save the number to which a share's link was sent."""
    is_invitation = message.kind == SmsMessage.Kind.INVITATION
    share = PaymentRequest.objects.filter(pk=message.subject).first() if is_invitation else None
    if share is not None and share.phone != message.phone and share.token in (message.body or ""):
        PaymentRequest.objects.filter(pk=share.pk).update(phone=message.phone)


def allow_resend(message: SmsMessage, *, might_be_sent: bool) -> None:
    """Let the lead send the link again if the message was not sent, or might not have been sent.

    The number of an unsent invitation is removed from the share, unless the message might have been sent
    (`might_be_sent`). An earlier number of the share is kept, because it already has the link. If the share has a new
    link by now, messages with the new link are not affected.
    """
    share = PaymentRequest.objects.filter(pk=message.subject).first() if message.kind in TO_MATES else None
    if share is None:
        return
    rows = PaymentRequest.objects.filter(pk=share.pk, token_digest=share.token_digest)
    if not _has_link(message, share):
        rows = rows.filter(next_reminder_at=None)
    if message.kind == SmsMessage.Kind.INVITATION and not might_be_sent:
        rows.filter(phone=message.phone).update(phone="")
    rows.update(next_reminder_at=None)


def _has_link(message: SmsMessage, share: PaymentRequest) -> bool:
    """Return whether the message contains the share's current link."""
    return share.token in (message.body or share.token)


def invitation_text(share: PaymentRequest) -> str:
    """Return the text of the message to a mate: the lead's name, the amount, the shop, and the link."""
    checkout = share.checkout
    return _("{name} is asking you for {amount}, your share at {shop}: {link}").format(
        name=safe_names.safe_lead_name(checkout),
        amount=money.display_for_payer(share.amount, checkout.currency),
        shop=safe_names.safe_shop_name(checkout.merchant),
        link=PaymentTarget(checkout, share).absolute(),
    )
