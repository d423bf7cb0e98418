"""The refund of a checkout in two steps: first the reason, then the amount for each card (rule refund.portal)."""

from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from checkout import refunds
from checkout.models import Checkout, Refund
from checkout.refunds import NotRefundable, RefundRefConflict
from checkout.settling import cards
from checkout.states import OperationInProgress, ShareStatus, Status
from config.lib import locks
from payments import money
from payments.models import Dispute, Merchant, Operation, Payment
from portal import access, audit, pages
from portal.access import requires
from portal.models import AuditEntry, Membership
from portal.orders import detail, order, timeline

MAX_REASON = 500
BUSY = "The bank is busy with this order. Try again in a moment."
DISPUTED: dict[str, str] = {
    Dispute.Status.OPEN: "A disputed order can’t be refunded until the bank has decided.",
    Dispute.Status.LOST: "The bank has given the money back after a dispute. No refund is possible.",
}


class RefundForm(forms.Form):
    """The form: step, reason, and the refund's reference. Two requests with one reference start one refund."""

    reason = forms.CharField(required=False, max_length=MAX_REASON, strip=True)
    ref = forms.RegexField(r"^portal_[0-9a-f-]{36}\Z", required=False)
    step = forms.ChoiceField(required=False, choices=[("check", ""), ("refund", ""), ("change", "")])

    def clean_reason(self) -> str:
        """Return the reason with single spaces. A pasted tab would not fit the API's document of the reason."""
        return " ".join(self.cleaned_data["reason"].split())


@requires("refund", sensitive=True)
def refund(request: HttpRequest, membership: Membership, checkout_uuid: UUID) -> HttpResponse:
    """Ask for the reason in step 1, show the amount for each card in step 2, then refund the order."""
    current_order = order.read_order(membership.merchant, checkout_uuid)
    form = RefundForm(request.POST or None)
    values = form.cleaned_data if form.is_bound and form.is_valid() else {}
    if values.get("step") == "refund" and values.get("ref"):
        return _refund_order(request, membership, current_order.checkout, values)
    order_page = detail.order_context(current_order)
    if not order_page["can_refund"]:
        pages.report_refusal(request, _state_refusal(current_order.checkout))
        return redirect("portal_checkout", checkout_uuid)
    step = _step_context(current_order.checkout, form, values)
    context = order_page | step | {"story": timeline.timeline_page(current_order)}
    return pages.show_page(request, membership, "portal/checkout.html", context, here="portal_checkouts")


def _step_context(checkout: Checkout, form: RefundForm, values: dict[str, Any]) -> dict[str, Any]:
    return {
        "refund_step": 2 if values.get("step") == "check" else 1,
        "reason": values.get("reason", form.data.get("reason", "")),
        "reason_error": form.errors.get("reason", [""])[0] if form.is_bound else "",
        "ref": values.get("ref") or f"portal_{uuid4()}",
        "parts": _amounts_by_card(checkout),
        "is_undecided": _can_amounts_change(checkout),
    }


def _refund_order(
    request: HttpRequest, membership: Membership, checkout: Checkout, values: dict[str, Any]
) -> HttpResponse:
    merchant, cause = membership.merchant, access.cause(membership)
    try:
        accepted = refunds.accept(
            merchant, checkout.pk, ref=values["ref"], reason=values["reason"] or None, cause=cause
        )
    except (OperationInProgress, OperationalError, NotRefundable, RefundRefConflict) as refusal:
        pages.report_refusal(request, _refusal_sentence(refusal, merchant, checkout.pk))
    else:
        _record_refund(request, membership, accepted.refund, checkout)
    return redirect("portal_checkout", checkout.pk)


def _refusal_sentence(refusal: Exception, merchant: Merchant, checkout_uuid: UUID) -> str:
    """Return a sentence that says why the order was not refunded.

    Raise a database error again, unless it means that a row was locked.
    """
    if isinstance(refusal, OperationalError) and not locks.is_locked(refusal):
        raise refusal
    if isinstance(refusal, NotRefundable | RefundRefConflict):
        return _state_refusal(order.read_order(merchant, checkout_uuid).checkout)
    return BUSY


def _record_refund(request: HttpRequest, membership: Membership, refund: Refund, checkout: Checkout) -> None:
    """Record in the audit log that this person refunded the order, once for each reference.

    If the process crashed between the refund and the record, the person's next attempt writes the record.
    """
    entries = AuditEntry.objects.filter(merchant=membership.merchant, action="refund")
    ref = refund.merchant_refund_ref
    if not entries.filter(facts__ref=ref).exists():
        order_id = checkout.merchant_order_id
        audit.record(request, membership, "refund", checkout=str(checkout.pk), order=order_id, ref=ref)


def _state_refusal(checkout: Checkout) -> str:
    """Return a sentence that says why the order cannot be refunded in its current state."""
    if checkout.status == Status.CAPTURED:
        dispute = refunds.dispute_blocking_refund(checkout)
        return DISPUTED[dispute.status] if dispute else BUSY
    reasons = {
        "refunding": "A refund of this order is already on its way. No second refund was started.",
        "refunded": "This order has already been refunded. No second refund was started.",
        "authorized": "This order is only held: cancel it instead. No money has been taken.",
    }
    return reasons.get(checkout.status, "Only a captured order can be refunded.")


def _amounts_by_card(checkout: Checkout) -> list[dict[str, str]]:
    """Return how much a refund returns to each card, which is what the card bears. The lead's card is first."""
    accounts = cards.read_accounts(checkout, is_locked=False)
    sorted_cards = sorted(accounts.cards.values(), key=lambda card: card is not accounts.lead)
    owed = [(card, card.owed(0)) for card in sorted_cards]
    lead = "to the lead’s" if checkout.has_mates else "to"
    return [
        _amount_of_card(amount, card.payment, lead if card is accounts.lead else "to one mate’s")
        for card, amount in owed
        if amount > 0
    ]


def _can_amounts_change(checkout: Checkout) -> bool:
    """Return whether the amounts can still change, because a mate is paying or a share is being reimbursed."""
    shares = checkout.payment_requests.all()
    if shares.filter(status=ShareStatus.PAYING).exists():
        return True
    return Operation.objects.filter(share_uuid__in=shares.values("pk"), ended_at=None).exists()


def _amount_of_card(amount: int, payment: Payment, whose: str) -> dict[str, str]:
    card = f"{payment.card_brand} ending {payment.card_last4}"
    return {"amount": money.display(amount, payment.currency), "card": f"{whose} {card}"}
