"""The pump that sends waiting SMS messages, each at most once (rules sms.outbox, sms.once, sms.doubt).

It uses separate threads, so that a carrier that does not respond cannot delay other work. It claims a message
in a separate transaction before it calls the carrier. It claims the message again only if the carrier
certainly did not accept it. If the process dies between the claim and the result, the message might have been
sent. The message is then not sent again, and the payer can request another code.
"""

import threading
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import close_old_connections
from prometheus_client import Counter

from config.lib import clock, failpoint
from config.lib.bulkhead import Bulkhead
from config.lib.database import queries
from config.lib.deadline import Deadline
from config.lib.leases import Queue
from hosted_page import statements
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.sms import invitations, lead_notifications, limits, outbox, senders, stopped_numbers
from hosted_page.sms.senders import NotAccepted, NotSent, Refused
from payments import operator_stops
from payments.operator_stops import AllStopped, MerchantSuspended

log = structlog.get_logger("hosted_page.sms.sending")
MAX_LATE_PER_RUN = 100
RETRY_AFTER = timedelta(seconds=5)  # delay before a retry, if the carrier is unavailable
OUTCOMES = Counter(
    "checkout_sms", "Attempts to send a text: sent, refused, unreachable, unclear or late", ["outcome"]
)
for _outcome in ("sent", "refused", "unreachable", "unclear", "late"):
    OUTCOMES.labels(_outcome)  # starts at 0: an alert does not notice a counter's first value
_carrier = Bulkhead(settings.SMS_SLOTS, queue=1, name="sms")  # queue=1, because only `stop` waits for a slot
_is_stopped = threading.Event()


def start_sender() -> None:
    """Start another thread that sends messages, if this process has a free slot. Return at once."""
    if not _is_stopped.is_set() and _carrier.enter():
        threading.Thread(target=_send_all, name="sms", daemon=True).start()


def stop(seconds: float) -> None:
    """Claim no more messages. Wait at most `seconds` for the messages in progress to end."""
    _is_stopped.set()
    deadline = Deadline.after(seconds)
    for _ in range(_carrier.slots):
        _carrier.wait(max(0.0, deadline.remaining()))


def _send_all() -> None:
    try:
        end_late()
        while not _is_stopped.is_set() and (message := claim()) is not None:
            start_sender()  # more messages might be waiting, and the carrier might be slow with this one
            close_old_connections()  # do not keep a connection while waiting for the carrier
            send(message)
    except Exception as error:  # a database error; another thread starts within a second and tries again
        log.error("SMS messages not sent", error=type(error).__name__, exc_info=True)
    finally:
        close_old_connections()
        _carrier.leave()


def claim() -> SmsMessage | None:
    """Claim the due message with the earliest `ends_at`, so that it is no longer due, and return it.

    A due message that must not be sent any more is ended instead. Return None if no message is due.
    """
    while (message := _WAITING.take_oldest(_claim_fields)) is not None and not _is_wanted(message):
        _end_unsent(message)
    return message


_WAITING = Queue(
    lambda: SmsMessage.objects.filter(ended_at=None).select_related("merchant"), "due_at", by="ends_at"
)


def _claim_fields(_: SmsMessage, now: datetime) -> dict[str, datetime | None]:
    """Return the fields of a claimed message. It is no longer due, because a code must not be sent twice."""
    return {"due_at": None, "claimed_at": now}


def send(message: SmsMessage) -> None:
    """Send a claimed message once, through the carrier.

    Requeue it only if the carrier certainly did not accept it.
    """
    try:
        failpoint.reach("sms_claimed", message.pk)
        senders.current_sender().send(message.phone or "", message.body or "", key=str(message.pk))
    except Exception as error:  # includes unexpected errors, because the message might have been sent
        _record_failure(message, error)
    else:
        OUTCOMES.labels("sent").inc()
        end_message(message, is_sent=True)


def _record_failure(message: SmsMessage, error: Exception) -> None:
    reason = error.reason if isinstance(error, NotSent) else ""
    log.warning(
        "SMS not sent",
        sms=str(message.pk),
        kind=message.kind,
        merchant=str(message.merchant_id),
        checkout=str(message.checkout_uuid),
        error=type(error).__name__,
        reason=reason,
    )
    if isinstance(error, NotAccepted):
        OUTCOMES.labels("unreachable").inc()
        _retry_later(message)
    else:
        is_refused = isinstance(error, Refused)
        OUTCOMES.labels("refused" if is_refused else "unclear").inc()
        end_message(
            message, is_sent=False, refusal=reason if is_refused else "", might_be_sent=not is_refused
        )


def _retry_later(message: SmsMessage) -> None:
    """Make a message due again in a few seconds. After its `ends_at`, it is not sent any more."""
    messages = SmsMessage.objects.filter(pk=message.pk, ended_at=None)
    messages.update(due_at=clock.now() + RETRY_AFTER, claimed_at=None)


def _end_unsent(message: SmsMessage) -> None:
    """End a message that was never sent to a carrier, and clear its claim.

    Without a claim, it does not count as one of the lead's messages.
    """
    if message.kind == SmsMessage.Kind.LEAD:
        # The notification is requeued first. If the process then dies, `end_late` ends the message as unsent.
        lead_notifications.requeue(message)
    end_message(message, is_sent=False, is_claimed=False)


def end_message(
    message: SmsMessage,
    *,
    is_sent: bool,
    is_claimed: bool = True,
    refusal: str = "",
    might_be_sent: bool = False,
) -> None:
    """End a message, so that it is not sent any more, and delete its number and text.

    If `is_claimed` is false, also clear its claim. `might_be_sent` is true if the message might have been sent
    although `is_sent` is false.
    """
    parameters = {"id": message.pk, "is_sent": is_sent, "is_taken": is_claimed, "refusal": refusal}
    is_ended = bool(queries.execute(statements.END_SMS_MESSAGE, parameters))
    if is_ended and is_sent:
        invitations.record_sent(message)
    elif is_ended:
        invitations.allow_resend(message, might_be_sent=might_be_sent)


def _is_wanted(message: SmsMessage) -> bool:
    """Return whether to send a message that was just claimed.

    The message must not be late, its text must still be true, and its merchant must not be stopped. If the
    number has stopped texts, it gets only codes.
    """
    now = message.claimed_at
    if now is None or message.ends_at <= now:
        return False
    try:
        operator_stops.check(message.merchant)
    except (MerchantSuspended, AllStopped):
        return False
    if message.kind in limits.CODES:
        return SignInCode.objects.filter(pk=message.pk, used_at=None, expires_at__gt=now).exists()
    if stopped_numbers.has_stopped(outbox.number_digests(message.phone or "")):
        return False
    if message.kind == SmsMessage.Kind.LEAD:
        return lead_notifications.is_wanted(message)
    return message.kind == SmsMessage.Kind.RECEIPT or invitations.is_wanted(message)


def end_late() -> None:
    """End the messages that were not sent in time, including those whose process died after it claimed them."""
    now = clock.now()
    for message in SmsMessage.objects.filter(ended_at=None, ends_at__lte=now)[:MAX_LATE_PER_RUN]:
        OUTCOMES.labels("late").inc()
        if message.claimed_at is None:
            _end_unsent(message)
        else:
            end_message(message, is_sent=False, might_be_sent=True)
