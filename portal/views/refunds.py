"""The page that lists refunds, newest first, and its CSV file."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from checkout.models import Refund
from checkout.remedies import reasons
from checkout.states import Status
from config.lib import clock
from config.lib.database import replica
from payments import money
from payments.models import Merchant
from portal import audit, badges, files, lists
from portal.access import requires
from portal.lists import Listing
from portal.models import Membership
from portal.orders import search

STATES = (("", "Any"), *((status, badges.REFUND[status].words) for status in Refund.Status.values))
# The columns in the CSV file, each with the function that returns its value.
COLUMNS: dict[str, Callable[[Refund], Any]] = {
    "refund_ref": lambda row: row.merchant_refund_ref,
    "order_id": lambda row: row.checkout.merchant_order_id,
    "checkout_uuid": lambda row: str(row.checkout_id),
    "status": lambda row: row.status,
    "amount": lambda row: money.plain_amount(row.amount, row.checkout.currency),
    "currency": lambda row: row.checkout.currency,
    "reason": lambda row: row.reason,
    "created_at": lambda row: clock.iso(row.created_at),
    "settled_at": lambda row: clock.iso(row.settled_at),
    "failure_reason": lambda row: row.failure_reason,
}


class Filters(search.Days):
    """The list's filters, all of them optional."""

    q = forms.CharField(required=False, max_length=search.MAX_TEXT)
    state = forms.ChoiceField(required=False, choices=STATES)


@requires("view")
@replica.readable
def list_refunds(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the refunds that match the filters."""
    form = Filters(request.GET or None)
    rows = _matching_refunds(membership.merchant, lists.filter_values(form))
    return lists.show_list(request, membership, Listing("refunds", form, rows, _list_context))


@requires("export")
def export_refunds(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """Return the refunds that match the filters as a CSV file."""
    form = Filters(request.GET)
    if not form.is_valid():
        return redirect("portal_refunds")
    source = files.Source(_matching_refunds(membership.merchant, form.cleaned_data), _file_lines)
    answer = files.csv_response(membership, f"refunds-{clock.now():%Y-%m-%d}.csv", tuple(COLUMNS), source)
    audit.record(request, membership, "exported", file="refunds", filters=search.filter_texts(form))
    return answer


def _matching_refunds(merchant: Merchant, filters: dict[str, Any]) -> QuerySet[Refund]:
    rows = Refund.objects.filter(merchant=merchant).select_related("checkout")
    if filters.get("q"):
        text = filters["q"].strip()
        by_ref = Refund.objects.filter(merchant=merchant, merchant_refund_ref=text).values_list(
            "pk", flat=True
        )
        checkout_uuids = search.find_checkouts(merchant, {"q": text}).values_list("pk", flat=True)
        by_checkout = Refund.objects.filter(checkout__in=list(checkout_uuids)).values_list("pk", flat=True)
        rows = rows.filter(pk__in={*by_ref, *by_checkout})
    if filters.get("state"):
        rows = rows.filter(status=filters["state"])
    return search.filter_by_days(rows, merchant, filters)


def _list_context(refunds: Sequence[Refund]) -> dict[str, Any]:
    return {
        "rows": [
            {
                "refund": row,
                "amount": money.display(row.amount, row.checkout.currency),
                "badge": badges.REFUND[row.status],
                "why": reasons.reason_text(row.failure_reason),
                "is_unpaid": row.status == Refund.Status.FAILED and row.checkout.status == Status.CAPTURED,
                "is_returned": row.settled_at is not None and row.status == Refund.Status.FAILED,
                "may_pass": reasons.can_succeed_again(row.failure_reason),
            }
            for row in refunds
        ]
    }


def _file_lines(refunds: list[Refund]) -> Iterator[list[Any]]:
    for row in refunds:
        yield [value(row) for value in COLUMNS.values()]
