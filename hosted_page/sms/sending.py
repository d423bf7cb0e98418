"""Sends the texts that wait, each at most once, in threads of its own: a silent carrier holds up nothing else.

A text is taken in a transaction of its own before the carrier hears of it, and never again after that: whoever
dies in between has perhaps sent it, and the payer asks for another code. Rules sms.outbox, sms.once.
"""

import threading

import structlog
from django.conf import settings
from django.db import close_old_connections, transaction

from config.lib import clock, failpoint
from config.lib.deadline import Deadline
from hosted_page.group import invitations
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.sms import senders
from payments import switches
from payments.switches import AllStopped, MerchantSuspended

log = structlog.get_logger("hosted_page.sms.sending")
LATE_AT_ONCE = 100
_slots = threading.BoundedSemaphore(settings.SMS_SLOTS)
_is_stopped = threading.Event()


def wake() -> None:
    """Have a thread more of this process look for texts, if one is free. Returns at once."""
    if not _is_stopped.is_set() and _slots.acquire(blocking=False):
        threading.Thread(target=_look, name="texts", daemon=True).start()


def stop(seconds: float) -> None:
    """Take no more texts; return when those that are being sent have ended, or the time is over."""
    _is_stopped.set()
    patience = Deadline.after(seconds)
    for _ in range(settings.SMS_SLOTS):
        _slots.acquire(timeout=max(0.0, patience.left()))


def _look() -> None:
    try:
        end_late()
        while not _is_stopped.is_set() and (text := claim()) is not None:
            wake()  # there may be more, and the carrier may be slow about this one
            close_old_connections()  # who waits for the carrier keeps no connection from others
            end(text, is_sent=give_to_carrier(text))
    except Exception as error:  # of the database: the next second looks again
        log.error("texts not sent", error=type(error).__name__, exc_info=True)
    finally:
        close_old_connections()
        _slots.release()


def claim() -> SmsMessage | None:
    """Take the text that has waited longest, for good; what nobody wants any more is ended on the way."""
    while (text := _take()) is not None and not _is_wanted(text):
        end(text, is_sent=False)
    return text


def _take() -> SmsMessage | None:
    with transaction.atomic(durable=True):
        now = clock.now()
        due = SmsMessage.objects.select_for_update(skip_locked=True, of=("self",)).select_related("merchant")
        text = due.filter(due_at__lte=now, ends_at__gt=now).order_by("due_at").first()
        if text is not None:
            text.due_at, text.claimed_at = None, now
            text.save(update_fields=["due_at", "claimed_at"])
    return text


def give_to_carrier(text: SmsMessage) -> bool:
    """Have the carrier send a text that was taken; return whether it says so."""
    failpoint.reach("text_claimed", text.pk)
    try:
        senders.current().send(text.phone or "", text.body or "", key=str(text.pk))
    except Exception as error:  # whatever the network does: nobody knows whether it went out
        log.warning("text not sent", text=str(text.pk), kind=text.kind, error=type(error).__name__)
        return False
    return True


def end(text: SmsMessage, *, is_sent: bool) -> None:
    """Empty a text that nobody sends any more."""
    now = clock.now()
    ended = {
        "due_at": None,
        "phone": None,
        "body": None,
        "ended_at": now,
        "sent_at": now if is_sent else None,
    }
    if SmsMessage.objects.filter(pk=text.pk, ended_at=None).update(**ended) and not is_sent:
        invitations.take_back(text)


def _is_wanted(text: SmsMessage) -> bool:
    """Whether what it is about is still so, and nobody has stopped its merchant."""
    try:
        switches.check(text.merchant)
    except (MerchantSuspended, AllStopped):
        return False
    if text.kind in (SmsMessage.Kind.CODE, SmsMessage.Kind.RETURN):
        return SignInCode.objects.filter(pk=text.pk, used_at=None, expires_at__gt=clock.now()).exists()
    return invitations.is_wanted(text)


def end_late() -> None:
    """Empty what was not sent by its end, and what somebody has taken who died over it."""
    now = clock.now()
    for text in SmsMessage.objects.filter(ended_at=None, ends_at__lte=now)[:LATE_AT_ONCE]:
        end(text, is_sent=False)
