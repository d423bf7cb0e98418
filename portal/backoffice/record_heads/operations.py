"""The top of an operation's page. Rule operator.page."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse

from checkout.models import Refund
from checkout.remedies import outstanding_refund, reasons
from payments import money, operation_queue, planning
from payments.discrepancies import definitions
from payments.discrepancies.definitions import Remedy
from payments.models import Booking, Discrepancy, Operation
from portal.backoffice import badges, cases
from portal.backoffice.order import card_of, format_when
from portal.backoffice.record_heads import payments
from portal.backoffice.record_heads.head import Head, Link, case_step, link_to, link_to_order

Kind, State, Purpose = Operation.Kind, Operation.State, Operation.Purpose
WHAT: dict[str, str] = {
    Kind.AUTHORIZE: "The service {asks} the bank to hold {amount} on {card} for {merchant}.",
    Kind.CAPTURE: "The service {asks} the bank to take {amount} from {card} for {merchant}.",
    Kind.VOID: "The service {asks} the bank to release the hold of {amount} on {card}.",
    Kind.REFUND: "This {pays} {amount} back to {card}, as part of a refund by {merchant}.",
}
REIMBURSEMENT = "This {pays} {amount} of a mate’s share back to the lead’s {card}."
OUTSIDE = "This was done in the provider’s own dashboard, not by this service: {kind} of {amount}, {card}."
# The verbs for the sentences above, by the state of an operation that has ended.
ENDED: dict[str, dict[str, str]] = {
    State.SUCCEEDED: {"asks": "asked", "pays": "paid"},
    State.DECLINED: {"asks": "asked", "pays": "was to pay"},
    State.FAILED: {"asks": "asked", "pays": "was to pay"},
}
STATES: dict[str, str] = {
    State.PLANNED: "It has not been sent yet.",
    State.IN_FLIGHT: "It is being sent, and the provider has not answered yet.",
    State.NEEDS_ACTION: "The bank asks the payer to confirm the payment.",
    State.PENDING: "The provider has accepted it, and has not confirmed it yet.",
    State.UNKNOWN: "The provider gave no clear answer, so its outcome is unknown.",
    State.SUCCEEDED: "It succeeded {at}.",
    State.DECLINED: "The bank declined it {at}.",
    State.FAILED: "It failed {at}.",
}
REPLACED = "It did not arrive at the provider, so another request replaced it {at}."
FIRST_SENT = "It was first requested {at}. The service has made {calls} since then."
RETURNED = "It succeeded {at}. Later the payer’s bank returned the money, so the provider has it."
AUTOMATIC: dict[str, str] = {
    State.PLANNED: "No action is needed: the service sends it {when}.",
    State.IN_FLIGHT: "Wait a moment. If there is no answer, the service asks again {when}.",
    State.NEEDS_ACTION: "No action is needed: the payer answers on the bank’s page.",
    State.PENDING: "No action is needed: the service asks the provider again {when}.",
    State.UNKNOWN: "The service asks the provider again {when}. To ask now, look it up.",
}
LOOK_UP_FIRST = "Look it up first."
CARD_CANNOT_TAKE_IT = "This card cannot take the money."
NOT_MADE: dict[str, str] = {
    Kind.AUTHORIZE: "No action is needed. No money is held, and the payer can use another card.",
    Kind.CAPTURE: "No action is needed here. The order’s page shows where the money is now.",
    Kind.VOID: "No action is needed here. The service tries to release a hold again until it has ended.",
    Kind.REFUND: "The money has not reached the card. The order’s page shows whether it is still owed.",
}


def head_of_operation(row: Operation, request: HttpRequest) -> Head:
    """Return the head of an operation: what it does, its state with the bank's reason, and the next step."""
    badge, summary = (
        badges.of_operation(row),
        f"{_what(row)} {_state(row)} {_start_under_earlier_key(row)}".strip(),
    )
    order = link_to_order(request, row.payment.checkout_uuid)
    case = None if row.purpose == Purpose.OUTSIDE else find_case(row)
    look_up = _look_up_form(request, row)
    if case is not None:
        return _head_with_case(row, request, Head(summary, badge=badge, links=order, form=look_up), case)
    if row.state in AUTOMATIC:
        when = format_when(row.next_attempt_at) if row.next_attempt_at else "automatically"
        step = AUTOMATIC[row.state].format(when=when)
        names_button = row.state == State.UNKNOWN and bool(look_up)
        return Head(summary, step, badge, order, names_button=names_button, form=look_up)
    if row.state == State.SUCCEEDED and not outstanding_refund.was_returned(row):
        return Head(summary, badge=badge, links=order)
    return _head_of_unmade(row, request, summary)


def find_case(row: Operation) -> Discrepancy | None:
    """Return the open discrepancy about an operation, or about an earlier attempt at the same refund."""
    same_part = Q(operation__payment=row.payment_id, operation__kind=Kind.REFUND)
    same_part &= Q(operation__refund_uuid=row.refund_uuid, operation__share_uuid=row.share_uuid)
    about = Q(operation=row.pk) | same_part if row.kind == Kind.REFUND else Q(operation=row.pk)
    return Discrepancy.objects.filter(about, closed_at=None).order_by("created_at").first()


def _head_with_case(row: Operation, request: HttpRequest, head: Head, case: Discrepancy) -> Head:
    """Return the head for an operation with an open discrepancy. `head` has the parts that do not depend on it.

    An operation in doubt is looked up first. Otherwise the filled button is the most promising remedy.
    """
    remedies = cases.remedies_of(case, row)
    action = "" if head.form else _remedy(row, remedies)
    is_hopeless = action == definitions.SETTLE_OUTSIDE.action
    note = LOOK_UP_FIRST if head.form else CARD_CANNOT_TAKE_IT if is_hopeless else ""
    case_links = link_to(request, "Open the discrepancy", "payments.discrepancy", case.pk)
    is_elsewhere = definitions.CLOSE in remedies
    return replace(
        head,
        next_step=case_step(case, remedies, page="operation", note=note),
        links=[*case_links, *head.links] if is_elsewhere else [*head.links, *case_links],
        names_button=bool(head.form or action or (is_elsewhere and case_links)),
        action=action,
    )


def _remedy(row: Operation, remedies: Sequence[Remedy]) -> str:
    """Return the most promising remedy. If the card cannot take a refund, this is to settle it outside the service."""
    actions = [remedy.action for remedy in remedies if remedy.page == "operation"]
    is_hopeless = not reasons.can_succeed_again(row.reason)
    if is_hopeless and definitions.SETTLE_OUTSIDE.action in actions:
        return definitions.SETTLE_OUTSIDE.action
    return actions[0] if actions else ""


def _what(row: Operation) -> str:
    text = WHAT[row.kind]
    if row.purpose in (Purpose.REIMBURSEMENT, Purpose.OUTSIDE):
        text = REIMBURSEMENT if row.purpose == Purpose.REIMBURSEMENT else OUTSIDE
    return text.format(
        **ENDED.get(row.state, {"asks": "asks", "pays": "pays"}),
        amount=money.display(row.amount, row.payment.currency),
        card=card_of(row.payment),
        merchant=row.payment.merchant,
        kind=str(row.get_kind_display()).lower(),
    )


def _state(row: Operation) -> str:
    if planning.was_replaced(row):
        return REPLACED.format(at=format_when(row.ended_at))
    text = RETURNED if outstanding_refund.was_returned(row) else STATES[row.state]
    is_refused = row.state in (State.DECLINED, State.FAILED)
    reason = reasons.reason_text(row.reason) if is_refused else ""
    return f"{text.format(at=format_when(row.ended_at))} {reason}".strip()


def _start_under_earlier_key(row: Operation) -> str:
    """Return sentences about the first request, if the operation has replaced others and has not ended, else ""."""
    if row.ended_at is not None:
        return ""
    counted: Any = planning.with_first_sending(Operation.objects.filter(pk=row.pk)).get()
    if counted.first_created_at == row.created_at:
        return ""
    calls = f"{counted.all_attempts} {'call' if counted.all_attempts == 1 else 'calls'}"
    return FIRST_SENT.format(at=format_when(counted.first_created_at), calls=calls)


def _look_up_form(request: HttpRequest, row: Operation) -> Link | None:
    """Return the button that queries the provider now, if the operation is in doubt and the operator may do so."""
    if not operation_queue.is_in_doubt(row) or not request.user.has_perm("payments.change_operation"):
        return None
    return Link("Look it up", reverse("admin_look_up", args=[row.pk]))


def _head_of_unmade(row: Operation, request: HttpRequest, summary: str) -> Head:
    """Return the head for an operation that was refused or returned, if no discrepancy about it is open."""
    badge, order = badges.of_operation(row), link_to_order(request, row.payment.checkout_uuid)
    booking = Booking.objects.filter(operation=row, kind=Booking.Kind.SETTLED_OUTSIDE, reverses=None).first()
    if booking is not None and not Booking.objects.filter(reverses=booking).exists():
        step = "No action is needed: the amount is booked as settled outside this service."
        links = link_to(request, "Open the booking", "payments.booking", booking.pk)
        return Head(summary, step, badge, [*links, *order])
    later = _later_attempt(row)
    if later is not None:
        state = badges.of_operation(later).words.lower()
        links = link_to(request, "Open the later attempt", "payments.operation", later.pk)
        return Head(
            summary, f"A later attempt replaces this one. Its state: {state}.", badge, [*links, *order]
        )
    refunds = Refund.objects.select_related("checkout")
    refund = refunds.filter(pk=row.refund_uuid).first() if row.refund_uuid else None
    if refund is not None and refund.status == Refund.Status.FAILED:
        step, links = payments.refund_step(refund, request)
        links = [*link_to(request, "Open the refund", "checkout.refund", refund.pk), *links, *order]
        return Head(summary, f"The whole refund failed. {step}", badge, links)
    return Head(summary, NOT_MADE[row.kind], badge, order)


def _later_attempt(row: Operation) -> Operation | None:
    """Return the latest operation that came later, with the same purpose, on the same payment."""
    rows = Operation.objects.filter(payment=row.payment_id, kind=row.kind, purpose=row.purpose, pk__gt=row.pk)
    return rows.filter(refund_uuid=row.refund_uuid, share_uuid=row.share_uuid).order_by("-pk").first()
