"""The top of an e-mail's page: its subject matter, whether it was sent, and a link to the row that it is about."""

from uuid import UUID

from django.apps import apps
from django.http import HttpRequest

from portal.backoffice import badges
from portal.backoffice.order import format_when
from portal.backoffice.record_heads.head import NO_STEP, Head, Link, link_to, link_to_order, order_words
from portal.mail import mail_kinds
from portal.models import OutboundEmail

# The kinds of e-mail whose key begins with a row's UUID, each with the words for a link to the row and the row's
# model.
SUBJECTS: dict[str, tuple[str, str]] = {
    "sensitive_change": ("Open the audit entry", "portal.auditentry"),
    "invitation": ("Open the invitation", "portal.invitation"),
    "endpoint_failing": ("Open the endpoint", "webhooks.endpoint"),
    "refund_failed": ("Open the refund", "checkout.refund"),
    "refund_returned": ("Open the refund", "checkout.refund"),
    "suspended": ("Open the stop", "payments.switch"),
    "resumed": ("Open the stop", "payments.switch"),
    "dispute_opened": ("Open the dispute", "payments.dispute"),
    "dispute_decided": ("Open the dispute", "payments.dispute"),
}
DROPPED_STEP = (
    "Check the mail server. The service does not send this email again, so inform its recipient yourself."
)


def checkout_uuid_of(row: OutboundEmail) -> UUID | None:
    """Return the UUID of the order that an e-mail is about, or None."""
    checkout_uuid = row.facts.get("checkout")
    return UUID(checkout_uuid) if checkout_uuid else None


def head_of_email(row: OutboundEmail, request: HttpRequest) -> Head:
    """Return the head of an e-mail: what it is about, its state, and what to do if it was not sent."""
    badge, checkout_uuid = badges.of_email(row), checkout_uuid_of(row)
    is_named = row.kind == "sensitive_change"
    what = str(row.facts.get("what", "")) if is_named else mail_kinds.kind_in_words(row.kind)
    about = f"An email {_recipient_words(row)}: “{what}”"
    if checkout_uuid is not None:
        about = f"{about}, {order_words(checkout_uuid)}"
    links = [*_link_to_subject(row, request), *link_to_order(request, checkout_uuid)]
    if not links:
        links = link_to(request, "Open the merchant", "payments.merchant", row.merchant_id)
    step = DROPPED_STEP if badge == badges.EMAIL_DROPPED else NO_STEP
    return Head(f"{about}. {_state_words(row)}", step, badge, links)


def _recipient_words(row: OutboundEmail) -> str:
    if row.merchant is None:
        return "to a person about their login"
    return (
        f"to a person invited by {row.merchant}"
        if row.kind == "invitation"
        else f"to the owners of {row.merchant}"
    )


def _state_words(row: OutboundEmail) -> str:
    if row.sent_at:
        return f"The mail server accepted it {format_when(row.sent_at)}."
    if row.dropped_at:
        return f"The mail server did not accept it, so the service gave up {format_when(row.dropped_at)}."
    if row.next_try_at:
        return f"The service sends it {format_when(row.next_try_at)}."
    return "It was not sent, because it came too late or had no recipient."


def _link_to_subject(row: OutboundEmail, request: HttpRequest) -> list[Link]:
    """Return a link to the row whose UUID is at the beginning of the e-mail's key, if the row still exists."""
    if row.kind not in SUBJECTS:
        return []
    words, label = SUBJECTS[row.kind]
    key = row.key.partition(":")[0]
    exists = apps.get_model(label)._base_manager.filter(pk=key).exists()
    return link_to(request, words, label, key) if exists else []
