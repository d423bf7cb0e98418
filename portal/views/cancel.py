"""The page on which a person cancels a held or unpaid checkout, with a reason (rule cancel.portal)."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from checkout import cancellations
from checkout.cancellations import NotCancellable
from checkout.models import Change, Checkout
from checkout.states import OperationInProgress, Status, VoidReason
from config.lib import clock, locks
from portal import access, audit, pages
from portal.access import requires
from portal.models import AuditEntry, Membership
from portal.orders import detail, order, timeline
from webhooks import subscriptions
from webhooks.models import EventType

MAX_REASON = 255
CLOCK_TOLERANCE = timedelta(minutes=5)  # the maximum difference between the database's clock and ours
BUSY = "A card payment on this order is under way. The order was not cancelled. Try again in a moment."
STATE_REFUSALS: dict[str, str] = {
    Status.CAPTURED: "This order has been captured: it stays captured, and you can refund it.",
    Status.REFUNDING: "This order has been captured, and its refund is on its way. It cannot be cancelled.",
    Status.REFUNDED: "This order has been refunded. It cannot be cancelled.",
    Status.EXPIRED: "This order was not paid in time, so it has expired. No money was taken.",
    Status.VOIDED: "This order had already been cancelled. No money was taken.",
}
LAPSED = "The hold had already lapsed. No money was taken."


class CancelForm(forms.Form):
    """The form for the reason. Only the merchant's people see the reason."""

    reason = forms.CharField(required=False, max_length=MAX_REASON, strip=True)


@requires("cancel", sensitive=True)
def cancel(request: HttpRequest, membership: Membership, checkout_uuid: UUID) -> HttpResponse:
    """Ask the person to confirm the cancel, then cancel the order."""
    current_order = order.read_order(membership.merchant, checkout_uuid)
    form = CancelForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        return _cancel_order(request, membership, current_order.checkout, form.cleaned_data["reason"])
    order_page = detail.order_context(current_order)
    if not order_page["can_cancel"]:
        pages.report_refusal(request, _state_refusal(current_order.checkout))
        return _go_back(request, checkout_uuid)
    question = _question_context(form, membership)
    if pages.is_part_requested(request, "question"):
        return pages.show_page(request, membership, "portal/_cancel.html", order_page | question)
    context = order_page | question | {"story": timeline.timeline_page(current_order)}
    return pages.show_page(request, membership, "portal/checkout.html", context, here="portal_checkouts")


def _question_context(form: CancelForm, membership: Membership) -> dict[str, Any]:
    return {
        "cancels": True,
        "reason": form.data.get("reason", ""),
        "errors": pages.first_errors(form),
        "sends_voided": subscriptions.has_subscribed(membership.merchant, EventType.VOIDED),
    }


def _go_back(request: HttpRequest, checkout_uuid: UUID) -> HttpResponse:
    """Redirect to the order's page. If htmx sent the request, the browser loads the whole page."""
    if pages.is_part_requested(request, "question"):
        return HttpResponseClientRedirect(reverse("portal_checkout", args=[checkout_uuid]))
    return redirect("portal_checkout", checkout_uuid)


def _cancel_order(
    request: HttpRequest, membership: Membership, checkout: Checkout, reason: str
) -> HttpResponse:
    merchant, cause = membership.merchant, access.cause(membership)
    try:
        cancelled = cancellations.cancel(merchant, checkout.pk, note=reason, cause=cause)
    except (NotCancellable, OperationInProgress, OperationalError) as refusal:
        current = order.read_order(merchant, checkout.pk).checkout
        pages.report_refusal(request, _refusal_sentence(refusal, current))
    else:
        if _is_cancelled_by(cause.actor, cancelled):
            _record_cancel(request, membership, cancelled)
        else:
            pages.report_refusal(request, _state_refusal(cancelled))
    return redirect("portal_checkout", checkout.pk)


def _refusal_sentence(refusal: Exception, checkout: Checkout) -> str:
    """Return a sentence that says why the order was not cancelled.

    Raise a database error again, unless it means that a row was locked.
    """
    if isinstance(refusal, OperationalError) and not locks.is_locked(refusal):
        raise refusal
    return _state_refusal(checkout) if isinstance(refusal, NotCancellable) else BUSY


def _is_cancelled_by(actor: str, checkout: Checkout) -> bool:
    """Return whether this person cancelled the order, with this request or an earlier one."""
    return Change.objects.filter(checkout=checkout, to=Status.VOIDED, actor=actor).exists()


def _record_cancel(request: HttpRequest, membership: Membership, checkout: Checkout) -> None:
    """Record in the audit log that this person cancelled the order, once for each order.

    If the process crashed between the cancel and the record, the person's next attempt writes the record.
    """
    facts: dict[str, Any] = {"checkout": str(checkout.pk), "order": checkout.merchant_order_id}
    since = (checkout.voided_at or clock.now()) - CLOCK_TOLERANCE
    recent = AuditEntry.objects.filter(merchant=membership.merchant, created_at__gte=since)
    if not recent.filter(action="cancelled", facts__checkout=facts["checkout"]).exists():
        audit.record(request, membership, "cancelled", **facts)


def _state_refusal(checkout: Checkout) -> str:
    if checkout.void_reason == VoidReason.AUTH_EXPIRED:
        return LAPSED
    return STATE_REFUSALS.get(checkout.status, BUSY)
