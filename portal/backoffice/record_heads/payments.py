"""The tops of the pages of payments, refunds and disputes. Rule operator.page."""

from django.conf import settings
from django.http import HttpRequest

from checkout.models import Refund
from checkout.remedies import outstanding_refund, reasons
from payments import disputes, money
from payments.discrepancies import kinds
from payments.models import Discrepancy, Dispute, Operation, Payment
from portal.backoffice import badges
from portal.backoffice.order import card_of, format_utc, format_when
from portal.backoffice.record_heads.head import (
    Head,
    Link,
    case_head,
    link_to,
    link_to_order,
    open_case,
    order_words,
)
from portal.badges import DISPUTE, REFUND

Status = Payment.Status
PAYMENT_STATES: dict[str, str] = {
    Status.AUTHORIZING: "The bank has not answered yet.",
    Status.AUTHORIZED: "The bank holds the money. The merchant has not captured it yet.",
    Status.CAPTURED: "The money was taken for the merchant.",
    Status.VOIDED: "The hold was released. No money was taken.",
    Status.DECLINED: "The bank declined it. No money is held.",
    Status.REFUNDED: "The money went back to the card.",
}
SHARE_CAPTURED = "The money was taken, and is reimbursed to the lead."
REFUND_STATES: dict[str, str] = {
    Refund.Status.PENDING: "The bank has not confirmed it yet.",
    Refund.Status.SETTLED: "The money went back {at}.",
    Refund.Status.FAILED: "It failed, and the payer does not have the money.",
}
REFUND_VERBS: dict[str, str] = {
    Refund.Status.PENDING: "refunds",
    Refund.Status.SETTLED: "refunded",
    Refund.Status.FAILED: "tried to refund",
}
REFUND_RETURNED = "It settled, and later the payer’s bank returned the money. The provider has it."
AGAIN = "The merchant can make the refund again, on the order’s page in the portal."
ANOTHER_WAY = "This card cannot take the money. The merchant has to pay the payer another way."
DISPUTE_STATES: dict[str, str] = {
    Dispute.Status.OPEN: "Their bank has taken the money back, and keeps it until it decides.",
    Dispute.Status.WON: "The bank decided for the merchant {at}. The merchant has the money.",
    Dispute.Status.LOST: "The bank decided for the {payer} {at}, so the {payer} keeps the money.",
}
EVIDENCE = (
    "The merchant acts first: the order’s page in the portal asks for evidence by mail to {support}. Send what"
    " you receive to the provider{until}. If no evidence is sent, the payer keeps the money."
)
OVERDUE = "The deadline for evidence was {until}. If the merchant mails evidence now, ask the provider if it counts."
SANDBOX = " In the sandbox, the merchant decides it with the call decide-dispute."


def head_of_payment(row: Payment, request: HttpRequest) -> Head:
    """Return the head of a payment: what the card pays for, where the money is, and what waits for an operator."""
    summary, badge = _payment_summary(row), badges.PAYMENT[row.status]
    order = link_to_order(request, row.checkout_uuid)
    dispute = row.disputes.filter(status=Dispute.Status.OPEN).first()
    if dispute is not None:
        links = link_to(request, "Open the dispute", "payments.dispute", dispute.pk)
        step = ["A dispute is open.", _due_sentence(dispute), "Its page says who has to act."]
        return Head(
            summary, " ".join(filter(None, step)), badges.DISPUTED, [*links, *order], names_button=True
        )
    case = open_case(operation__payment=row.pk) or open_case(subject__in=row.disputes.values("pk"))
    if case is not None:
        return case_head(request, summary, badge, case, *order)
    return Head(summary, badge=badge, links=order)


def _payment_summary(row: Payment) -> str:
    """Return sentences about the card, the order, where the money is, and the reason for a decline."""
    amount, card = money.display(row.amount, row.currency), card_of(row)
    what = "a share of " if row.kind == Payment.Kind.SHARE else ""
    pays = f"{card[:1].upper()}{card[1:]} pays {amount} for {what}{order_words(row.checkout_uuid)} of {row.merchant}."
    is_mates = row.kind == Payment.Kind.SHARE and row.status == Status.CAPTURED
    state = SHARE_CAPTURED if is_mates else PAYMENT_STATES[row.status]
    reason = reasons.reason_text(row.decline_reason) if row.status == Status.DECLINED else ""
    return " ".join(filter(None, (pays, state, reason)))


def head_of_refund(row: Refund, request: HttpRequest) -> Head:
    """Return the head of a refund: what it pays back, its state with the bank's reason, and who has to act."""
    parts = list(
        outstanding_refund.with_refund_facts(Operation.objects.filter(refund_uuid=row.pk)).order_by("pk")
    )
    returned = [part for part in parts if outstanding_refund.was_returned(part)]
    badge = badges.RETURNED if returned else REFUND[row.status]
    state = REFUND_RETURNED if returned else REFUND_STATES[row.status].format(at=format_when(row.settled_at))
    amount = money.display(row.amount, row.checkout.currency)
    summary = f"{row.merchant} {REFUND_VERBS[row.status]} {amount} for order {row.checkout.merchant_order_id}. {state}"
    summary = f"{summary} {_refund_reason(row, parts)}".strip()
    case = open_case(operation__refund_uuid=row.pk)
    if case is not None:
        return case_head(request, summary, badge, case, *link_to_order(request, row.checkout_id))
    step, links = refund_step(row, request)
    last_failed = _failed_parts(parts)[-1:]
    for part in last_failed if row.status == Refund.Status.FAILED else []:
        links = [*links, *link_to(request, "Open the operation", "payments.operation", part.pk)]
    return Head(summary, step, badge, [*links, *link_to_order(request, row.checkout_id)])


def _refund_reason(row: Refund, parts: list[Operation]) -> str:
    """Return the bank's reason for a failed refund, or for the last failed part of a pending one."""
    if row.status == Refund.Status.FAILED:
        return reasons.reason_text(row.failure_reason) or "The bank gave no reason."
    failed = _failed_parts(parts)
    is_pending = row.status == Refund.Status.PENDING and bool(failed)
    return f"A part of it was refused. {reasons.reason_text(failed[-1].reason)}" if is_pending else ""


def _failed_parts(parts: list[Operation]) -> list[Operation]:
    return [part for part in parts if part.state in (Operation.State.FAILED, Operation.State.DECLINED)]


def refund_step(row: Refund, request: HttpRequest) -> tuple[str, list[Link]]:
    """Return the next step for a refund without an open discrepancy, and links to the pages for this step."""
    if row.status == Refund.Status.PENDING:
        return "No action is needed: the service asks the bank until it confirms the refund.", []
    if row.status == Refund.Status.SETTLED:
        return "No action is needed.", []
    standing = row.checkout.refunds.exclude(status=Refund.Status.FAILED).first()
    if standing is not None:
        links = link_to(request, "Open the later refund", "checkout.refund", standing.pk)
        return "No action is needed here: a later refund replaces this one.", links
    return AGAIN if reasons.can_succeed_again(row.failure_reason) else ANOTHER_WAY, []


def head_of_dispute(row: Dispute, request: HttpRequest) -> Head:
    """Return the head of a dispute: who disputes what and why, the decision, and who has to act by when."""
    amount, payer = money.display(row.amount, row.payment.currency), disputes.payer_of(row.payment)
    verb = "disputes" if row.status == Dispute.Status.OPEN else "disputed"
    what = (
        f"The {payer} {verb} {amount} of {order_words(row.checkout_uuid)}, paid with {card_of(row.payment)}."
    )
    state = DISPUTE_STATES[row.status].format(at=format_when(row.closed_at), payer=payer)
    summary = f"{what} {disputes.reason_in_words(row)} {state}"
    about = Discrepancy.objects.filter(subject=row.pk, closed_at=None).order_by("created_at")
    case = about.exclude(kind=kinds.DISPUTED.name).first()
    order = link_to_order(request, row.checkout_uuid)
    if case is not None:
        return case_head(request, summary, DISPUTE[row.status], case, *order)
    if row.status != Dispute.Status.OPEN:
        return Head(summary, badge=DISPUTE[row.status], links=order)
    badge = DISPUTE[row.status]._replace(note=f"evidence due{_until(row)}" if row.respond_by else "")
    return Head(summary, _evidence_step(row), badge, order)


def _evidence_step(row: Dispute) -> str:
    if row.is_overdue:
        step = OVERDUE.format(until=format_utc(row.respond_by))
    else:
        step = EVIDENCE.format(until=_until(row), support=settings.SUPPORT_EMAIL)
    return f"{step}{SANDBOX if settings.SANDBOX else ''}"


def _due_sentence(row: Dispute) -> str:
    """Return a sentence with the deadline for evidence, or "" if the provider gave none."""
    if row.respond_by is None:
        return ""
    return (
        f"Evidence {'was' if row.is_overdue else 'is'} due by {row.respond_by.day} {row.respond_by:%b %H:%M}."
    )


def _until(row: Dispute) -> str:
    return f" by {format_utc(row.respond_by)}" if row.respond_by else ""
