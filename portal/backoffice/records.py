"""The rows in the operators' lists of disputes, payments, operations, refunds, events, stops and more.

Each row names its kind, its order and its amount in words. The ids are on the row's own page.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from checkout.remedies import outstanding_refund
from hosted_page.sms.message_states import state_of
from payments import disputes, money
from payments.models import Dispute, Operation, Payment
from portal import audit, audit_words
from portal.backoffice import badges, order, subjects
from portal.backoffice.record_heads import emails, others, webhooks
from portal.badges import DISPUTE, ENDED, REFUND, Badge, of_attempt, of_delivery
from portal.mail import mail_kinds
from webhooks import lookup
from webhooks.models import Delivery


@dataclass(frozen=True)
class RecordRow:
    """A row in a list. `order_uuid` is the order to which it belongs, and `note` is the second line of its title."""

    record: Any
    title: str
    at: datetime
    merchant: Any
    order_uuid: UUID | None = None
    order_id: str = ""
    amount: str = ""
    badge: Badge | None = None
    note: str = ""

    @property
    def heading(self) -> str:
        """Return the heading of the row's page, such as "Dispute of £22.50, A-20417"."""
        title = f"{self.title} of {self.amount}" if self.amount else self.title
        return f"{title}, {self.order_id}" if self.order_id else title


def build_rows(records: Sequence[Any], request: HttpRequest) -> list[RecordRow]:
    """Return the rows for a page of a list. One statement reads the order ids for all rows."""
    rows = [DESCRIPTIONS[row._meta.label_lower](row) for row in records]
    ids = subjects.read_order_ids([row.order_uuid for row in rows if row.order_uuid])
    return [replace(row, order_id=ids.get(row.order_uuid, "") if row.order_uuid else "") for row in rows]


def build_refund_rows(records: Sequence[Any], request: HttpRequest) -> list[RecordRow]:
    """Return the rows for a page of refunds. If a card's bank returned a part, the badge is "Returned"."""
    parts = Operation.objects.filter(refund_uuid__in=[row.pk for row in records])
    returned = {
        part.refund_uuid
        for part in outstanding_refund.with_refund_facts(parts)
        if outstanding_refund.was_returned(part)
    }
    return [
        replace(row, badge=badges.RETURNED) if row.record.pk in returned else row
        for row in build_rows(records, request)
    ]


def build_payment_rows(records: Sequence[Any], request: HttpRequest) -> list[RecordRow]:
    """Return the rows for a page of payments. A payment with an open dispute has the badge "Disputed"."""
    open_disputes = Dispute.objects.filter(
        payment__in=[row.pk for row in records], status=Dispute.Status.OPEN
    )
    disputed = set(open_disputes.values_list("payment", flat=True))
    return [
        replace(row, badge=badges.DISPUTED) if row.record.pk in disputed else row
        for row in build_rows(records, request)
    ]


def build_event_rows(records: Sequence[Any], request: HttpRequest) -> list[RecordRow]:
    """Return the rows for a page of events. Each has the badge of its newest delivery, as on its own page."""
    deliveries = lookup.deliveries_of([row.pk for row in records]).order_by("pk")
    newest = {delivery.event_id: delivery for delivery in deliveries}
    return [
        replace(row, badge=of_delivery(newest[row.record.pk])) if row.record.pk in newest else row
        for row in build_rows(records, request)
    ]


def _describe_dispute(row: Any) -> RecordRow:
    until = row.respond_by if row.status == row.Status.OPEN else None
    return RecordRow(
        row,
        "Dispute",
        row.opened_at,
        row.payment.merchant,
        row.checkout_uuid,
        amount=money.display(row.amount, row.payment.currency),
        badge=DISPUTE[row.status]._replace(
            note=f"evidence due by {order.format_utc(until)}" if until else ""
        ),
        note=disputes.reason_in_words(row),
    )


def _describe_payment(row: Any) -> RecordRow:
    return RecordRow(
        row,
        "A mate’s share" if row.kind == Payment.Kind.SHARE else "Payment",
        row.created_at,
        row.merchant,
        row.checkout_uuid,
        amount=money.display(row.amount, row.currency),
        badge=badges.PAYMENT[row.status],
        note=f"{row.card_brand} {row.card_last4}".strip(),
    )


def _describe_operation(row: Any) -> RecordRow:
    tries = row.attempts if row.ended_at else row.all_attempts  # under all keys, while there is no outcome
    return RecordRow(
        row,
        badges.operation_title(row),
        row.created_at,
        row.payment.merchant,
        row.payment.checkout_uuid,
        amount=money.display(row.amount, row.payment.currency),
        badge=badges.of_operation(row),
        note=f"{tries} {'try' if tries == 1 else 'tries'}",
    )


def _describe_refund(row: Any) -> RecordRow:
    return RecordRow(
        row,
        "Refund",
        row.created_at,
        row.merchant,
        row.checkout_id,
        amount=money.display(row.amount, row.checkout.currency),
        badge=REFUND[row.status],
        note=f"Reference {row.merchant_refund_ref}",
    )


def _describe_event(row: Any) -> RecordRow:
    badge = ENDED[Delivery.Status.SUPERSEDED] if row.superseded_at else None
    return RecordRow(row, row.type, row.created_at, row.merchant, row.checkout_uuid, badge=badge)


def _describe_delivery(row: Any) -> RecordRow:
    return RecordRow(
        row,
        row.event_type,
        row.event.created_at,
        row.merchant,
        row.event.checkout_uuid,
        badge=of_delivery(row),
        note=f"{row.attempt_count} {'attempt' if row.attempt_count == 1 else 'attempts'}",
    )


def _describe_attempt(row: Any) -> RecordRow:
    return RecordRow(
        row,
        f"Attempt {row.number} of {row.event_type}",
        row.started_at,
        row.merchant,
        row.delivery.event.checkout_uuid,
        badge=of_attempt(row.delivery, row),
        note=webhooks.answer_words(row),
    )


def _describe_audit_entry(row: Any) -> RecordRow:
    actor = f"Key “{row.client}”" if row.client else str(row.user or "")
    note = " · ".join(filter(None, (actor, audit_words.facts_in_words(row))))
    return RecordRow(row, audit.ACTIONS.get(row.action, row.action), row.created_at, row.merchant, note=note)


def _describe_switch(row: Any) -> RecordRow:
    merchant = row.merchant or "All merchants"
    badge = badges.STOPPED if row.is_stopped else badges.STOP_ENDED
    return RecordRow(
        row,
        _stop_words(row),
        row.changed_at,
        merchant,
        badge=badge,
        note=row.reason,
    )


def _stop_words(row: Any) -> str:
    """Return a stop as a sentence without a full stop, such as "Zebra Tours is stopped"."""
    if row.merchant is None:
        return "All merchants are stopped" if row.is_stopped else "All merchants were stopped"
    return f"{row.merchant} {'is' if row.is_stopped else 'was'} stopped"


def _describe_text(row: Any) -> RecordRow:
    number = f"•••• {row.phone[-4:]}" if row.phone else "Phone number deleted"
    return RecordRow(
        row,
        str(row),
        row.created_at,
        row.merchant,
        row.checkout_uuid,
        badge=others.TEXT_BADGES[state_of(row)],
        note=f"{number} · {row.refusal}" if row.refusal else number,
    )


def _describe_share(row: Any) -> RecordRow:
    return RecordRow(
        row,
        f"Share {row.position}",
        row.created_at,
        row.checkout.merchant,
        row.checkout_id,
        amount=money.display(row.amount, row.checkout.currency),
        badge=badges.SHARE[row.status],
    )


def _describe_email(row: Any) -> RecordRow:
    return RecordRow(
        row,
        mail_kinds.kind_in_words(row.kind),
        row.created_at,
        row.merchant or "",
        emails.checkout_uuid_of(row),
        badge=badges.of_email(row),
        note=str(row.facts.get("what", "")) if row.kind == "sensitive_change" else "",
    )


DESCRIPTIONS: dict[str, Callable[[Any], RecordRow]] = {
    "payments.dispute": _describe_dispute,
    "payments.payment": _describe_payment,
    "payments.operation": _describe_operation,
    "checkout.refund": _describe_refund,
    "webhooks.event": _describe_event,
    "webhooks.delivery": _describe_delivery,
    "webhooks.attempt": _describe_attempt,
    "payments.switch": _describe_switch,
    "portal.auditentry": _describe_audit_entry,
    "portal.outboundemail": _describe_email,
    "hosted_page.smsmessage": _describe_text,
    "checkout.paymentrequest": _describe_share,
}
