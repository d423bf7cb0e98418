"""The pages of the delivery log: the list, one delivery, and the forms that resend deliveries."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from config.lib.database import replica
from payments.models import Merchant
from portal import access, audit, lists, pages
from portal.access import requires
from portal.dashboard import merchant_tasks
from portal.deliveries import log, search
from portal.lists import Listing
from portal.models import Membership
from portal.orders.search import parse_uuid
from webhooks import resending, subscriptions
from webhooks.models import Attempt, Delivery, Subscription

# For each refusal that a person can override, the name of the question that the person must confirm.
CONFIRMATIONS: dict[type[resending.CannotResend], str] = {
    resending.HoldIsOver: "over",
    resending.AlreadyDelivered: "delivered",
}


class NothingChosen(Exception):
    """Raised if the form chooses no deliveries and no valid time span. The message is a sentence for the person."""


@requires("view")
@replica.readable
def list_deliveries(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show a line for each attempt, newest first. For parked and waiting deliveries, show a line for each delivery."""
    merchant = membership.merchant
    with timezone.override(ZoneInfo(merchant.time_zone)):
        form = search.Filters(request.GET or None)
        filters = lists.filter_values(form)
    rows, key = search.matching_rows(merchant, filters), search.sort_field(filters)
    context, in_steps = partial(_list_context, merchant, filters), filters.get("outcome") == "delivered"
    return lists.show_list(
        request, membership, Listing("deliveries", form, rows, context, key=key, in_steps=in_steps)
    )


def _list_context(
    merchant: Merchant, filters: dict[str, Any], rows: Sequence[Attempt | Delivery]
) -> dict[str, Any]:
    lines = search.list_lines(merchant, rows)
    hopeless = resending.count_unsendable(merchant)
    return {
        **_parked_context(merchant, filters),
        "chips": search.active_filters(filters),
        "empty_heading": search.empty_heading(filters),
        "empty_text": search.empty_text(filters),
        "rows": lines,
        "can_tick": any(line["can_tick"] for line in lines),
        "is_live": any(log.is_live(line["delivery"]) for line in lines),
        "has_endpoint": partial(_has_endpoint, merchant),  # it is called only if the log is empty
        "hopeless": hopeless,
        "too_late": search.newest_unsendable(merchant) if hopeless == 1 else None,
    }


def _parked_context(merchant: Merchant, filters: dict[str, Any]) -> dict[str, Any]:
    """Return how many parked deliveries can be sent again, and the time span to resend.

    The time span comes from the filters. If they have none, only the last seven days count.
    """
    since, until = filters.get("since"), filters.get("until")
    rows, maximum = merchant_tasks.parked_deliveries(merchant), merchant_tasks.MAXIMUM
    if since or until:
        rows, maximum = resending.parked_deliveries(merchant, since, until), resending.MAX_RESENT
    parked = resending.sendable_deliveries(rows.order_by("-ended_at")[:maximum])
    oldest = parked.order_by("ended_at").values_list("ended_at", flat=True).first()
    return {"parked": parked.count(), "parked_since": since or oldest, "parked_until": until}


def _has_endpoint(merchant: Merchant) -> bool:
    return Subscription.objects.filter(merchant=merchant, ended_at=None).exists()


@requires("view")
def show_delivery(request: HttpRequest, membership: Membership, delivery_uuid: UUID) -> HttpResponse:
    """Show a delivery's attempts, and the request and the response of one attempt."""
    return _show_detail(request, membership, delivery_uuid)


def _show_detail(
    request: HttpRequest, membership: Membership, delivery_uuid: UUID, **more: Any
) -> HttpResponse:
    delivery = _delivery_of_merchant(membership.merchant, delivery_uuid)
    number = request.GET.get("attempt", "")
    details = log.delivery_details(
        membership.merchant,
        delivery,
        number=int(number) if number.isdecimal() and len(number) < 9 else None,
        reveal=more.pop("reveal", False),
    )
    context = {"details": details, "confirm": request.GET.get("confirm", "")} | more
    is_part = pages.is_part_requested(request, "opened")
    template = "portal/_delivery.html" if is_part else "portal/delivery.html"
    return pages.show_page(request, membership, template, context, here="portal_deliveries")


def _delivery_of_merchant(merchant: Merchant, delivery_uuid: UUID) -> Delivery:
    rows = Delivery.objects.select_related("subscription").prefetch_related("event")
    return get_object_or_404(rows, pk=delivery_uuid, merchant=merchant)


@requires("reveal", sensitive=True, form_of="portal_delivery")
def reveal(request: HttpRequest, membership: Membership, delivery_uuid: UUID) -> HttpResponse:
    """Show the personal data in a marketing.opted_in event, and record in the audit log that the person saw it."""
    delivery = _delivery_of_merchant(membership.merchant, delivery_uuid)
    audit.record(request, membership, "personal_data_revealed", event=str(delivery.event_id))
    return _show_detail(request, membership, delivery_uuid, reveal=True)


@requires("resend", form_of="portal_deliveries")
def resend(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Resend one delivery, the selected deliveries, or all deliveries that were parked in a time span."""
    delivery_uuids = [uuid for text in request.POST.getlist("delivery") if (uuid := parse_uuid(text))]
    try:
        if request.POST.get("which") == "one" and len(delivery_uuids) == 1:
            return _resend_one(request, membership, delivery_uuids[0])
        _show_result(request, _resend_many(request, membership, delivery_uuids))
    except NothingChosen as refusal:
        pages.report_refusal(request, str(refusal))
    except subscriptions.SubscriptionNotFound:
        pages.report_refusal(request, "There is no endpoint to send to. Save an endpoint first.")
        return redirect("portal_webhooks")
    return redirect("portal_deliveries")


def _resend_one(request: HttpRequest, membership: Membership, delivery_uuid: UUID) -> HttpResponse:
    address = reverse("portal_delivery", args=[delivery_uuid])
    try:
        delivery = _resend_and_record(request, membership, delivery_uuid)
    except resending.DeliveryNotFound:
        raise Http404 from None
    except (resending.HoldIsOver, resending.AlreadyDelivered) as refusal:
        return redirect(f"{address}?confirm={CONFIRMATIONS[type(refusal)]}")
    except resending.CannotResend as refusal:
        pages.report_refusal(request, str(refusal))
        return redirect(address)
    messages.success(request, "You sent this delivery again. Your server’s answer appears here.")
    return redirect(f"{address}?attempt={delivery.attempt_count + 1}")


def _resend_and_record(request: HttpRequest, membership: Membership, delivery_uuid: UUID) -> Delivery:
    is_confirmed = request.POST.get("confirm") == "yes"
    with transaction.atomic(durable=True):
        delivery = resending.resend(
            membership.merchant,
            delivery_uuid,
            cause=access.cause(membership),
            although_over=is_confirmed,
            although_delivered=is_confirmed,
        )
        audit.record(request, membership, "deliveries_resent", event=str(delivery.event_id), sent=1)
    return delivery


def _resend_many(
    request: HttpRequest, membership: Membership, delivery_uuids: list[UUID]
) -> resending.ResendResult:
    merchant, cause = membership.merchant, access.cause(membership)
    is_confirmed = request.POST.get("confirm") == "yes"
    with transaction.atomic(durable=True):
        if request.POST.get("which") == "parked":
            since, until = _read_span(request)
            result = resending.resend_parked(merchant, since, until, cause=cause, although_over=is_confirmed)
        elif delivery_uuids:
            result = resending.resend_selected(
                merchant, delivery_uuids, cause=cause, although_over=is_confirmed
            )
        else:
            raise NothingChosen("First tick the deliveries that you want to send again.")
        audit.record(request, membership, "deliveries_resent", sent=result.sent, left_out=result.left_out)
    return result


@requires("resend", form_of="portal_deliveries")
def close(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Close the parked deliveries that cannot be sent again."""
    with transaction.atomic(durable=True):
        closed = resending.close_unsendable(membership.merchant)
        if closed:
            audit.record(request, membership, "deliveries_closed", closed=closed)
    words = "1 delivery is closed." if closed == 1 else f"{closed:,} deliveries are closed."
    messages.success(request, f"{words} Closed deliveries stay in the log.") if closed else None
    return redirect("portal_deliveries")


def _show_result(request: HttpRequest, result: resending.ResendResult) -> None:
    if not result.sent:
        words = "None of these deliveries can be sent again: their hold is over, or they were delivered or are too old."
        messages.warning(request, words)
        return
    single, several = "1 delivery is on its way.", f"{result.sent:,} deliveries are on their way."
    words = single if result.sent == 1 else several
    if result.left_out:
        words += (
            f" {result.left_out:,} were left out: their hold is over, or they were delivered or are too old."
        )
    messages.success(request, words)


def _read_span(request: HttpRequest) -> tuple[datetime, datetime | None]:
    """Return the start and the end of the time span in the form. The end is None if the span lasts until now.

    Raises NothingChosen if the span is missing or invalid.
    """
    end = request.POST.get("until", "")
    since, until = _parse_moment(request.POST.get("since", "")), _parse_moment(end)
    if since is None or (end and until is None):
        raise NothingChosen("Choose the start and the end of the period.")
    return since, until


def _parse_moment(text: str) -> datetime | None:
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo else None
