"""The pages for checkouts: the list and its CSV file, one checkout, and its timeline."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect

from checkout import current_checkouts
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from config.lib.database import replica
from payments import money
from payments.models import Dispute
from portal import audit, badges, files, lists, pages
from portal.access import requires
from portal.badges import Badge
from portal.dashboard import merchant_tasks
from portal.lists import Listing
from portal.models import Membership
from portal.orders import detail, order, search, timeline
from portal.orders.disputed import ORDER_BADGES

# The columns in the CSV file, each with the function that returns its value.
COLUMNS: dict[str, Callable[[Checkout], Any]] = {
    "order_id": lambda row: row.merchant_order_id,
    "checkout_uuid": lambda row: str(row.pk),
    "status": lambda row: row.status,
    "void_reason": lambda row: row.void_reason,
    "amount": lambda row: money.plain_amount(row.amount, row.currency),
    "currency": lambda row: row.currency,
    "created_at": lambda row: clock.iso(row.created_at),
    "authorized_at": lambda row: clock.iso(row.authorized_at),
    "captured_at": lambda row: clock.iso(row.captured_at),
    "voided_at": lambda row: clock.iso(row.voided_at),
    "refunded_amount": lambda row: money.plain_amount(row.refunded_amount, row.currency),
    "last_refund_at": lambda row: clock.iso(row.last_refund_at),
    "card_brand": lambda row: row.payment.card_brand if row.payment else "",
    "card_last4": lambda row: row.payment.card_last4 if row.payment else "",
    "mates": lambda row: _count_mates(row)[0],
    "mates_paid": lambda row: _count_mates(row)[1],
}


@requires("view")
@replica.readable
def list_checkouts(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show a page of the checkouts that match the filters, newest first."""
    form = search.Filters(request.GET or None)
    filters = lists.filter_values(form)
    rows = _with_details(search.find_checkouts(membership.merchant, filters))
    return lists.show_list(
        request, membership, Listing("checkouts", form, rows, partial(_list_context, rows, filters))
    )


def _list_context(
    rows: QuerySet[Checkout], filters: dict[str, Any], checkouts: Sequence[Checkout]
) -> dict[str, Any]:
    extra_badges = _extra_badges(checkouts)
    return {
        "chips": search.active_filters(filters, {row.currency for row in checkouts}),
        "rows": [
            _list_row(checkout, extra_badges) for checkout in current_checkouts.refresh_late(rows, checkouts)
        ],
    }


def _extra_badges(checkouts: Sequence[Checkout]) -> dict[UUID, Badge]:
    """Return the additional badges, by order id: for a failed or returned refund, or for a dispute."""
    failed = merchant_tasks.failed_refunds(checkout__in=checkouts).values_list("checkout", flat=True)
    disputes = Dispute.objects.filter(checkout_uuid__in=[row.pk for row in checkouts]).order_by("created_at")
    returned = merchant_tasks.returned_refunds(checkout__in=checkouts).values_list("checkout", flat=True)
    refunds = dict.fromkeys(failed, badges.REFUND_FAILED) | dict.fromkeys(returned, badges.REFUND_RETURNED)
    return refunds | {row.checkout_uuid: ORDER_BADGES[Dispute.Status(row.status)] for row in disputes}


@requires("export")
def export_checkouts(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """Return the checkouts that match the filters as a CSV file."""
    form = search.Filters(request.GET)
    if not form.is_valid():
        return redirect(f"/portal/checkouts?{request.GET.urlencode()}")
    rows = _with_details(search.find_checkouts(membership.merchant, form.cleaned_data))
    name, source = f"checkouts-{clock.now():%Y-%m-%d}.csv", files.Source(rows, partial(_file_lines, rows))
    answer = files.csv_response(membership, name, tuple(COLUMNS), source)
    audit.record(request, membership, "exported", file="checkouts", filters=search.filter_texts(form))
    return answer


@requires("view")
def show_checkout(request: HttpRequest, membership: Membership, checkout_uuid: UUID) -> HttpResponse:
    """Show one checkout: the facts about it, where the money is, and its timeline."""
    current_order = order.read_order(membership.merchant, checkout_uuid)
    context = detail.order_context(current_order) | {
        "story": timeline.timeline_page(current_order, request.GET.get("before", ""))
    }
    if pages.is_part_requested(request, "state"):
        return pages.show_page(request, membership, "portal/_checkout.html", context, here="portal_checkouts")
    return pages.show_page(request, membership, "portal/checkout.html", context, here="portal_checkouts")


@requires("view")
def download_timeline(request: HttpRequest, membership: Membership, checkout_uuid: UUID) -> HttpResponse:
    """Return the timeline as JSON, so that the person can send it to a colleague or to support."""
    current_order = order.read_order(membership.merchant, checkout_uuid)
    page = timeline.as_json(current_order, request.GET.get("before", ""))
    return JsonResponse(page, json_dumps_params={"indent": 2})


def _with_details(rows: QuerySet[Checkout]) -> QuerySet[Checkout]:
    shares = PaymentRequest.objects.only("checkout_id", "status").order_by()
    whole = rows.select_related("payment").prefetch_related(Prefetch("payment_requests", shares))
    return current_checkouts.with_read_at(whole)


def _list_row(checkout: Checkout, extra_badges: Mapping[UUID, Badge]) -> dict[str, Any]:
    mates, paid = _count_mates(checkout)
    card = checkout.payment
    return {
        "checkout": checkout,
        "amount": money.display(checkout.amount, checkout.currency),
        "badge": badges.of_checkout(checkout),
        "more": extra_badges.get(checkout.pk),
        "mates": f"{paid} of {mates}" if mates else "",
        "card": f"{card.card_brand} {card.card_last4}" if card else "",
    }


def _count_mates(checkout: Checkout) -> tuple[int, int]:
    shares = list(checkout.payment_requests.all())
    return len(shares), sum(share.paid_at is not None for share in shares)


def _file_lines(rows: QuerySet[Checkout], checkouts: list[Checkout]) -> Iterator[list[Any]]:
    for checkout in current_checkouts.refresh_late(rows, checkouts):
        yield [value(checkout) for value in COLUMNS.values()]
