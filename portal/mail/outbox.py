"""The outbox for mails. A pump sends its rows, so that no response waits for a mail server.

Rule mail.outbox.
"""

import smtplib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.template.loader import render_to_string
from django.utils import timezone
from prometheus_client import Counter

from checkout import refunds
from checkout.models import Change, Checkout
from checkout.states import Status
from config.lib import clock, crypto, wakeup
from config.lib.bulkhead import Bulkhead
from config.lib.leases import Queue
from hosted_page.sms import safe_names
from payments import disputes, money, operator_stops
from payments.models import Dispute, Merchant
from portal import audit_words
from portal.dashboard import merchant_tasks
from portal.mail import change_subjects, support
from portal.models import AuditEntry, Invitation, Membership, OutboundEmail, Role
from portal.orders.entries import card_of

log = structlog.get_logger("portal.mail.outbox")
LEASE = timedelta(minutes=2)  # longer than the wait for any mail server
MAX_TRIES = 10  # the last attempt is four hours after the first
MAX_PER_RUN = 50
PERMANENT = 500  # SMTP codes from here on mean a permanent error
SEND_EMAILS = "portal.tasks.send_emails"
OUTCOMES = Counter(
    "checkout_mails", "Attempts to send a mail: sent, failed, or dropped after the last one", ["outcome"]
)
for _outcome in ("sent", "failed", "dropped"):
    OUTCOMES.labels(_outcome)  # begin at 0; otherwise, an alert would not notice the first one
SERVER = Bulkhead(4, name="mail")  # maximum threads per process that a hanging mail server can block
SUBJECTS = {
    "sensitive_change": "{merchant}: {change}",
    "keys_of_person": "{merchant}: API keys that {person} still knows",
    "invitation": "Join {shop}",
    "endpoint_failing": "{merchant}: your webhook endpoint has failed for an hour",
    "deliveries_parked": "{merchant}: {news}",
    "refund_failed": "{merchant}: a refund failed",
    "refund_returned": "{merchant}: a refund was returned",
    "holds_lost": "{merchant}: {news}",
    "suspended": "{merchant}: payments are stopped",
    "resumed": "{merchant}: payments work again",
    "dispute_opened": "{merchant}: a {payer} disputes {amount}",
    "dispute_decided": "{merchant}: the dispute over {amount} is {status}",
}
# The kinds of mail that a merchant gets at most once a day, each with the rows that the mail counts.
DAILY: dict[str, Callable[[Merchant], QuerySet[Any]]] = {
    "deliveries_parked": merchant_tasks.parked_deliveries,
    "holds_lost": merchant_tasks.lost_holds,
}
# For each daily kind, the words in the subject for one row and for several rows.
DAILY_NEWS = {
    "deliveries_parked": ("a delivery is parked", "deliveries are parked"),
    "holds_lost": ("a hold lapsed before a capture", "holds lapsed before a capture"),
}
# For each daily kind, the condition that a row appeared after a given time. A lapsed hold appears when the
# service records its end as a change, which can be later than its `voided_at`.
APPEARED_SINCE: dict[str, Callable[[datetime], Q | Exists]] = {
    "deliveries_parked": lambda at: Q(ended_at__gt=at),
    "holds_lost": lambda at: Exists(
        Change.objects.filter(checkout=OuterRef("pk"), to=Status.VOIDED, pk__gte=clock.first_id(at))
    ),
}


class NoLongerNeeded(Exception):
    """Raised if the situation that the mail reports is over, so that the mail is no longer needed."""


def queue_once(merchant: Merchant, kind: str, *, key: str, **facts: Any) -> bool:
    """Queue a mail, unless the merchant already has one with this kind and key. Return whether it is new."""
    _, is_new = OutboundEmail.objects.get_or_create(
        merchant=merchant, kind=kind, key=key, defaults={"facts": facts, "next_try_at": clock.now()}
    )
    if is_new:
        wakeup.wake_after_commit(SEND_EMAILS)
    return is_new


def rows_without_mail(merchant: Merchant, kind: str) -> QuerySet[Any]:
    """Return the merchant's rows for this daily kind that appeared after the last mail of this kind."""
    waiting = DAILY[kind](merchant)
    last_sent_at = OutboundEmail.objects.filter(merchant=merchant, kind=kind).aggregate(at=Max("sent_at"))[
        "at"
    ]
    return waiting.filter(APPEARED_SINCE[kind](last_sent_at)) if last_sent_at else waiting


def queue_mail(message: EmailMessage, kind: str, *, seconds: int | None) -> None:
    """Queue an e-mail whose text is complete. If `seconds` is given, the e-mail is not sent later than that."""
    now = clock.now()
    OutboundEmail.objects.create(
        kind=kind,
        key=str(uuid4()),
        text=f"{message.to[0]}\n{message.subject}\n{message.body}",
        ends_at=None if seconds is None else now + timedelta(seconds=seconds),
        next_try_at=now,
    )
    wakeup.wake_after_commit(SEND_EMAILS)


def send_due() -> int:
    """Send the mails that are due. Return how many were sent.

    Failed mails are retried at growing intervals.
    """
    sent = 0
    with SERVER.slot() as slot:
        for _ in range(MAX_PER_RUN if slot.is_taken() else 0):
            email = _WAITING.take_oldest(_lease_fields)  # it skips mails that another sender has locked
            if email is None:
                break
            sent += _send_mail(email)
    return sent


_WAITING = Queue(lambda: OutboundEmail.objects.select_related("merchant"), "next_try_at")


def _lease_fields(email: OutboundEmail, now: datetime) -> dict[str, Any]:
    """Return the new values for the fields that lease a mail, so that no other process sends it at the same time."""
    return {"tries": email.tries + 1, "next_try_at": now + LEASE}


def _send_mail(email: OutboundEmail) -> bool:
    now = clock.now()  # the next mail counts the rows that appear after this time
    message = None
    try:
        message = _build_message(email)
        if message is not None:
            message.send()
    except NoLongerNeeded:
        email.delete()  # a later e-mail can then have the same key
        return False
    # The mail server or the facts can raise any exception. The other mails must be sent despite it.
    except Exception as error:
        ids = {"email": str(email.pk), "merchant": str(email.merchant_id or "")}
        log.error("mail not sent", **ids, kind=email.kind, error=type(error).__name__)
        _record_failure(email, error)
        return False
    if message is not None:
        OUTCOMES.labels("sent").inc()
        email.sent_at = now
    _end_mail(email)
    return message is not None


def _record_failure(email: OutboundEmail, error: Exception) -> None:
    """Set the time of the next attempt. After the last attempt, drop the mail."""
    if email.tries < MAX_TRIES and not _is_refused_for_good(error):
        OUTCOMES.labels("failed").inc()
        email.next_try_at = clock.now() + timedelta(seconds=15 * 2**email.tries)
        email.save(update_fields=["next_try_at"])
        return
    OUTCOMES.labels("dropped").inc()
    email.dropped_at = clock.now()
    _end_mail(email)


def _is_refused_for_good(error: Exception) -> bool:
    """Return whether the mail server refused all recipients with a permanent error (5xx)."""
    return isinstance(error, smtplib.SMTPRecipientsRefused) and all(
        code >= PERMANENT for code, _ in error.recipients.values()
    )


def _end_mail(email: OutboundEmail) -> None:
    email.next_try_at = email.text = None
    email.facts.pop("link", None)  # links and codes are deleted as soon as they are not needed
    email.save(update_fields=["next_try_at", "sent_at", "dropped_at", "text", "facts"])


def _build_message(email: OutboundEmail) -> EmailMessage | None:
    """Return the mail to send, or None if it has expired or has no recipient. Raises NoLongerNeeded."""
    if email.ends_at is not None and email.ends_at <= clock.now():
        return None
    if email.merchant is None:
        recipient, written_subject, written_body = (email.text or "").split("\n", 2)
        return EmailMessage(written_subject, written_body, to=[recipient])
    context = _mail_context(email, email.merchant)
    recipients = _recipients_of(email)
    if not recipients:
        return None
    context |= {
        "merchant": email.merchant,
        "portal": f"{settings.PORTAL_URL}/portal",
        "support": settings.SUPPORT_EMAIL,
        "our_support": support.support_in_words(),
        "test_mode": settings.SANDBOX,
    }
    with timezone.override(email.merchant.time_zone):
        body = render_to_string(f"portal/mail/{email.kind}.txt", context)
    words = SUBJECTS[email.kind].format(**context | {"merchant": email.merchant.name})
    subject = ("TEST · " if settings.SANDBOX else "") + words
    return EmailMessage(" ".join(subject.split()), body, to=recipients)


def _recipients_of(email: OutboundEmail) -> list[str]:
    if email.kind == "invitation":
        open_invitations = Invitation.objects.filter(pk=email.key, ended_at=None)
        return list(open_invitations.values_list("email", flat=True))
    owners = Membership.objects.filter(merchant=email.merchant, role=Role.OWNER, user__is_active=True)
    return list(owners.values_list("user__email", flat=True))


def _mail_context(email: OutboundEmail, merchant: Merchant) -> dict[str, Any]:
    if email.kind == "sensitive_change":
        entry = AuditEntry.objects.select_related("user", "client").get(pk=email.facts["entry"])
        return _change_facts(entry, email.facts["what"])
    if email.kind == "invitation":
        invitation = Invitation.objects.select_related("invited_by").get(pk=email.key)
        link = settings.PORTAL_URL + crypto.decrypt(email.facts["link"])
        return {"invitation": invitation, "link": link, "shop": safe_names.safe_shop_name(merchant)}
    if email.kind in DAILY:
        if count := DAILY[email.kind](merchant).count():
            return {"count": count, "news": DAILY_NEWS[email.kind][count > 1]}
        raise NoLongerNeeded
    if email.kind in ("suspended", "resumed"):
        if operator_stops.is_stopped(merchant.pk) != (email.kind == "suspended"):
            raise NoLongerNeeded
        return {"since": datetime.fromisoformat(email.facts["since"])}
    if email.kind in ("dispute_opened", "dispute_decided"):
        dispute_uuid, _, _ = email.key.partition(":")
        return _dispute_facts(Dispute.objects.select_related("payment").get(pk=dispute_uuid), email.kind)
    return dict(email.facts)


def _change_facts(entry: AuditEntry, text: str) -> dict[str, Any]:
    """Return the facts in a mail about a sensitive change.

    If the text already names the changed settings or the person with their role, `facts` is "".
    """
    has_facts = entry.action not in ("settings_changed", "person_invited", "invitation_accepted")
    if entry.action == "person_invited":
        text = f"Invited {entry.facts['email']}"
    if entry.action in ("person_invited", "invitation_accepted"):
        text = f"{text} as {Role(entry.facts['role']).in_words}"
    return {
        "entry": entry,
        "change": change_subjects.change_subject(entry, text),
        "what": text[:1].lower() + text[1:],
        "facts": audit_words.facts_in_words(entry) if has_facts else "",
        "needs_approval": entry.facts.get("is_approved") is False,
    }


def _dispute_facts(dispute: Dispute, kind: str) -> dict[str, Any]:
    """Return the facts in a mail about a dispute.

    Raises NoLongerNeeded if the dispute's status no longer fits the kind of mail.
    """
    if (kind == "dispute_opened") != (dispute.status == Dispute.Status.OPEN):
        raise NoLongerNeeded
    checkout = Checkout.objects.get(pk=dispute.checkout_uuid)
    return {
        "amount": money.display(dispute.amount, checkout.currency),
        "order": checkout.merchant_order_id,
        "checkout": checkout.pk,
        "payer": disputes.payer_of(dispute.payment),
        "card": card_of(dispute.payment),
        "reference": dispute.reference,
        "status": dispute.status,
        "is_refundable": checkout.status == Status.CAPTURED
        and refunds.dispute_blocking_refund(checkout) is None,
        "respond_by": dispute.respond_by,
    }
