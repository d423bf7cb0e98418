"""Texts to mates with the links of their shares: an invitation, then at most one reminder a day (INTERFACE.md 5)."""

from datetime import timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import translation
from django.utils.translation import gettext as _

from checkout.models import PaymentRequest
from checkout.states import ShareStatus, Status
from config.lib import clock, wakeup
from hosted_page import naming, sms, texts
from hosted_page.models import Text
from hosted_page.texts import TooManyTexts
from hosted_page.visit import Visit
from payments import money

log = structlog.get_logger("hosted_page.invitations")

SEND_TEXTS = "hosted_page.tasks.send_texts"
BETWEEN = timedelta(days=1)
LEASE = timedelta(seconds=30)
PAUSES = (timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=10))  # then it is given up


class NotNow(Exception):
    """The share is not open, or its mate has had a text within a day."""


def text(share_uuid: UUID, *, phone: str, address: str) -> None:
    """Text a share's link to its mate; `phone` is E.164, "" for the number that the link went to before.

    Raises NotNow, TooManyTexts.
    """
    with transaction.atomic(durable=True):
        rows = PaymentRequest.objects.select_for_update(of=("self",)).select_related("checkout")
        share = rows.get(pk=share_uuid)
        now = clock.now()
        to = phone or share.phone
        if not to or not _is_open(share) or (share.next_reminder_at and now < share.next_reminder_at):
            raise NotNow
        of_checkout = Text.objects.filter(checkout_uuid=share.checkout_id, kind=Text.Kind.INVITATION)
        kind = Text.Kind.REMINDER if to == share.phone else Text.Kind.INVITATION
        if kind == Text.Kind.INVITATION and of_checkout.count() >= texts.INVITATIONS:
            raise TooManyTexts(_("We have texted all we can for this order. Send the link yourself."))
        texts.count(kind, to, subject=share.pk, checkout_uuid=share.checkout_id, address=address)
        share.phone, share.next_reminder_at = to, now + BETWEEN
        share.save(update_fields=["phone", "next_reminder_at"])
        wakeup.after_commit(SEND_TEXTS)


def _is_open(share: PaymentRequest) -> bool:
    return share.status == ShareStatus.OPEN and share.checkout.status == Status.CAPTURED


def send_due() -> None:
    """Send what waits, one after the other, each at least once and under the same key when it is tried again."""
    while (waiting := _claim()) is not None:
        try:
            is_sent = _send(waiting)
        except Exception as error:  # whatever the network does: it is tried again
            _try_later(waiting, error)
        else:
            Text.objects.filter(pk=waiting.pk).update(
                sent_at=clock.now() if is_sent else None, next_try_at=None
            )


def _claim() -> Text | None:
    with transaction.atomic(durable=True):
        now = clock.now()
        due = Text.objects.select_for_update(skip_locked=True).filter(next_try_at__lte=now)
        found = due.order_by("next_try_at").first()
        if found is not None:
            found.next_try_at, found.tries = now + LEASE, found.tries + 1
            found.save(update_fields=["next_try_at", "tries"])
    return found


def _send(waiting: Text) -> bool:
    """Return whether it was sent: nothing is, for a share that nobody can pay now."""
    rows = PaymentRequest.objects.select_related("checkout__merchant", "checkout__lead")
    share = rows.get(pk=waiting.subject)
    if not _is_open(share):
        return False
    with translation.override(waiting.language):
        sms.current().send(waiting.phone, words(share), key=str(waiting.pk))
    return True


def _try_later(waiting: Text, error: Exception) -> None:
    is_last = waiting.tries > len(PAUSES)
    log.warning("text not sent", text=str(waiting.pk), error=type(error).__name__, is_given_up=is_last)
    later = None if is_last else clock.now() + PAUSES[waiting.tries - 1]
    Text.objects.filter(pk=waiting.pk).update(next_try_at=later)


def words(share: PaymentRequest) -> str:
    """Return what a mate is told: who asks for how much, for which shop, and the link."""
    checkout = share.checkout
    return _("{name} asks you for {amount}, your share at {shop}: {link}").format(
        name=naming.lead(checkout),
        amount=money.display(share.amount, checkout.currency),
        shop=naming.shop(checkout.merchant),
        link=Visit(checkout, share).absolute(),
    )
