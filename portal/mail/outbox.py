"""The outbox of mails to a merchant's people: rows with the facts that they tell, sent by a pump."""

from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.utils import timezone

from checkout.models import Checkout
from config.lib import clock, crypto, leases
from hosted_page.sms import naming
from payments import money
from payments.models import Dispute, Merchant
from portal.dashboard import needs
from portal.models import AuditEntry, Invitation, Membership, OutboundEmail, Role

log = structlog.get_logger("portal.mail.outbox")
LEASE = timedelta(minutes=2)  # longer than any mail server is waited for
MAX_TRIES = 8
AT_ONCE = 50
SUBJECTS = {
    "sensitive_change": "{merchant}: {what}",
    "invitation": "Join {shop}",
    "endpoint_failing": "{merchant}: your webhook endpoint has failed for an hour",
    "deliveries_parked": "{merchant}: deliveries are parked",
    "refund_failed": "{merchant}: a refund failed",
    "holds_lost": "{merchant}: holds lapsed before a capture",
    "dispute_opened": "{merchant}: a payer disputes {amount}",
    "dispute_decided": "{merchant}: the dispute over {amount} is {status}",
}


def tell(merchant: Merchant, kind: str, *, key: str, **facts: Any) -> bool:
    """Queue a mail, unless the merchant has one of this kind and key already; return whether it is new."""
    _, is_new = OutboundEmail.objects.get_or_create(
        merchant=merchant, kind=kind, key=key, defaults={"facts": facts, "next_try_at": clock.now()}
    )
    return is_new


def send_due() -> int:
    """Send the mails that are due; return how many were sent. One that fails is tried again, ever less often."""
    waiting, sent = OutboundEmail.objects.select_related("merchant"), 0
    for _ in range(AT_ONCE):
        email = leases.take_oldest(waiting, "next_try_at", _tried)  # a slow server holds up no other sender
        if email is None:
            break
        sent += _send(email)
    return sent


def _tried(email: OutboundEmail, now: datetime) -> dict[str, Any]:
    """Return the fields of a mail that is taken: leased, so that none sends it twice."""
    tries = email.tries + 1
    return {"tries": tries, "next_try_at": now + max(LEASE, timedelta(minutes=2**tries))}


def _send(email: OutboundEmail) -> bool:
    message = None
    try:
        message = _message(email)
        if message is not None:
            message.send()
    except Exception as error:  # of the mail server or the facts: the other mails go out all the same
        log.error("mail not sent", email=str(email.pk), kind=email.kind, error=type(error).__name__)
        if email.tries < MAX_TRIES:
            return False
        message = None
    email.next_try_at, email.sent_at = None, clock.now() if message else None
    email.facts.pop("link", None)  # an invitation's link is not kept longer than needed
    email.save(update_fields=["next_try_at", "sent_at", "facts"])
    return message is not None


def _message(email: OutboundEmail) -> EmailMessage | None:
    """Return the mail as it reads now, None if there is nobody or nothing to tell any more."""
    context = _context(email)
    to = _recipients(email)
    if context is None or not to:
        return None
    context |= {
        "merchant": email.merchant,
        "portal": f"{settings.BASE_URL}/portal",
        "test_mode": settings.SANDBOX,
    }
    with timezone.override(email.merchant.time_zone):
        body = render_to_string(f"portal/mail/{email.kind}.txt", context)
    words = SUBJECTS[email.kind].format(**context | {"merchant": email.merchant.name})
    subject = ("TEST · " if settings.SANDBOX else "") + words
    return EmailMessage(" ".join(subject.split()), body, to=to)


def _recipients(email: OutboundEmail) -> list[str]:
    if email.kind == "invitation":
        open_ones = Invitation.objects.filter(pk=email.key, ended_at=None)
        return list(open_ones.values_list("email", flat=True))
    owners = Membership.objects.filter(merchant=email.merchant, role=Role.OWNER, user__is_active=True)
    return list(owners.values_list("user__email", flat=True))


def _context(email: OutboundEmail) -> dict[str, Any] | None:
    if email.kind == "sensitive_change":
        entry = AuditEntry.objects.select_related("user", "client").get(pk=email.facts["entry"])
        return {"entry": entry, "what": email.facts["what"].lower(), "words": email.facts["what"]}
    if email.kind == "invitation":
        invitation = Invitation.objects.select_related("invited_by").get(pk=email.key)
        link = settings.BASE_URL + crypto.decrypt(email.facts["link"])
        return {"invitation": invitation, "link": link, "shop": naming.shop(email.merchant)}
    if email.kind in ("deliveries_parked", "holds_lost"):
        look = needs.parked if email.kind == "deliveries_parked" else needs.lost_holds
        count = look(email.merchant).count()
        return {"count": count} if count else None
    if email.kind in ("dispute_opened", "dispute_decided"):
        return _of_dispute(Dispute.objects.select_related("payment").get(pk=email.key), email.kind)
    return dict(email.facts)


def _of_dispute(dispute: Dispute, kind: str) -> dict[str, Any] | None:
    """Return what a mail about a dispute says, None about one to answer that is decided by now."""
    if kind == "dispute_opened" and dispute.closed_at is not None:
        return None
    checkout = Checkout.objects.get(pk=dispute.checkout_uuid)
    return {
        "amount": money.display(dispute.amount, checkout.currency),
        "order": checkout.merchant_order_id,
        "checkout": checkout.pk,
        "status": dispute.status,
        "respond_by": dispute.respond_by,
        "support": settings.SUPPORT_EMAIL,
    }
