"""Mails to a merchant's people: written as rows with what they tell, sent by a pump."""

from datetime import timedelta
from typing import Any

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone

from config.lib import clock, crypto
from hosted_page import naming
from payments.models import Merchant
from portal import needs
from portal.models import AuditEntry, Invitation, Membership, Notice, Role

log = structlog.get_logger("portal.notices")
LEASE = timedelta(minutes=2)  # longer than any mail server is waited for
MOST_TRIES = 8
AT_ONCE = 50
SUBJECTS = {
    "sensitive_change": "{merchant}: {what}",
    "invitation": "Join {shop}",
    "endpoint_failing": "{merchant}: your webhook endpoint has failed for an hour",
    "deliveries_parked": "{merchant}: deliveries are parked",
    "refund_failed": "{merchant}: a refund failed",
    "holds_lost": "{merchant}: holds lapsed before a capture",
}


def tell(merchant: Merchant, kind: str, *, key: str, **facts: Any) -> bool:
    """Put a mail to the merchant's owners into the outbox, unless this key was told already; return whether."""
    _, is_new = Notice.objects.get_or_create(
        merchant=merchant, kind=kind, key=key, defaults={"facts": facts, "next_try_at": clock.now()}
    )
    return is_new


def send_due() -> int:
    """Send the mails that are due; return how many went out. One that fails is tried again, ever more seldom."""
    sent = 0
    for _ in range(AT_ONCE):
        notice = _claim()
        if notice is None:
            break
        sent += _send(notice)
    return sent


def _claim() -> Notice | None:
    """Lease one: a slow mail server holds up no other sender, and none sends it a second time."""
    with transaction.atomic(durable=True):
        now = clock.now()
        due = Notice.objects.filter(next_try_at__lte=now).order_by("next_try_at")
        notice = due.select_for_update(of=("self",), skip_locked=True).select_related("merchant").first()
        if notice is not None:
            notice.tries += 1
            notice.next_try_at = now + max(LEASE, timedelta(minutes=2**notice.tries))
            notice.save(update_fields=["tries", "next_try_at"])
    return notice


def _send(notice: Notice) -> bool:
    message = None
    try:
        message = _message(notice)
        if message is not None:
            message.send()
    except (
        Exception
    ) as error:  # of the mail server, or of what it should tell: the others go out all the same
        log.error("mail not sent", notice=str(notice.pk), kind=notice.kind, error=type(error).__name__)
        if notice.tries < MOST_TRIES:
            return False
        message = None
    notice.next_try_at, notice.sent_at = None, clock.now() if message else None
    notice.facts.pop("link", None)  # an invitation's link is nobody's business any more
    notice.save(update_fields=["next_try_at", "sent_at", "facts"])
    return message is not None


def _message(notice: Notice) -> EmailMessage | None:
    """The mail as it reads now, None when there is nobody or nothing to tell any more."""
    context = _context(notice)
    to = _recipients(notice)
    if context is None or not to:
        return None
    context |= {
        "merchant": notice.merchant,
        "portal": f"{settings.BASE_URL}/portal",
        "test_mode": settings.SANDBOX,
    }
    with timezone.override(notice.merchant.time_zone):
        body = render_to_string(f"portal/mail/{notice.kind}.txt", context)
    words = {
        "merchant": notice.merchant.name,
        "shop": context.get("shop", ""),
        "what": context.get("what", ""),
    }
    subject = ("TEST · " if settings.SANDBOX else "") + SUBJECTS[notice.kind].format(**words)
    return EmailMessage(" ".join(subject.split()), body, to=to)


def _recipients(notice: Notice) -> list[str]:
    if notice.kind == "invitation":
        open_ones = Invitation.objects.filter(pk=notice.key, ended_at=None)
        return list(open_ones.values_list("email", flat=True))
    owners = Membership.objects.filter(merchant=notice.merchant, role=Role.OWNER, user__is_active=True)
    return list(owners.values_list("user__email", flat=True))


def _context(notice: Notice) -> dict[str, Any] | None:
    if notice.kind == "sensitive_change":
        entry = AuditEntry.objects.select_related("user", "client").get(pk=notice.facts["entry"])
        return {"entry": entry, "what": notice.facts["what"].lower(), "words": notice.facts["what"]}
    if notice.kind == "invitation":
        invitation = Invitation.objects.select_related("invited_by").get(pk=notice.key)
        link = settings.BASE_URL + crypto.decrypt(notice.facts["link"])
        return {"invitation": invitation, "link": link, "shop": naming.shop(notice.merchant)}
    if notice.kind == "deliveries_parked":
        count = needs.parked(notice.merchant).count()
        return {"count": count} if count else None
    if notice.kind == "holds_lost":
        count = needs.lost_holds(notice.merchant).count()
        return {"count": count} if count else None
    return dict(notice.facts)
