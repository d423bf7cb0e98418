"""The log of the merchant's API requests, newest first (rule portal.requests)."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

from django import forms
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from checkout.models import ApiCall, Checkout
from config.lib import clock
from config.lib.database import partitions, replica
from payments.models import Merchant
from portal import lists
from portal.access import requires
from portal.lists import Listing
from portal.models import ApiClient, Membership
from portal.orders import entries, search
from portal.orders.entries import REFUSED_FROM, UNKNOWN_CODE

SHOWN_PERIOD = timedelta(days=7)
OUTCOMES = (("", "Any"), ("accepted", "Accepted"), ("refused", "Refused"), ("unknown", "Outcome unknown"))

_IS_UNKNOWN = Q(error_code=UNKNOWN_CODE)
OUTCOME_CONDITIONS = {
    "accepted": Q(status__lt=REFUSED_FROM),
    "refused": Q(status__gte=REFUSED_FROM) & ~_IS_UNKNOWN,
    "unknown": _IS_UNKNOWN,
}


class Filters(forms.Form):
    """The list's filters, all of them optional."""

    q = forms.CharField(required=False, max_length=search.MAX_TEXT)
    outcome = forms.ChoiceField(required=False, choices=OUTCOMES)


@requires("view")
@replica.readable
def list_requests(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the requests from the last seven days that match the filters."""
    form = Filters(request.GET or None)
    rows = _matching_requests(membership.merchant, lists.filter_values(form))
    context = partial(_request_lines, membership.merchant)
    return lists.show_list(request, membership, Listing("requests", form, rows, context))


def _matching_requests(merchant: Merchant, filters: dict[str, Any]) -> QuerySet[ApiCall]:
    since = clock.now() - SHOWN_PERIOD
    rows = ApiCall.objects.filter(merchant=merchant, created_at__gte=since)
    # The condition for the id limits the query to a few partitions.
    rows = rows.filter(pk__gte=clock.first_id(since - partitions.MAX_CLOCK_DIFFERENCE))
    if filters.get("q"):
        text = filters["q"].strip()
        checkout_uuids = list(search.find_checkouts(merchant, {"q": text}).values_list("pk", flat=True))
        by_request_id = rows.filter(request_id=text).values_list("pk", flat=True)[: search.MAX_MATCHES]
        by_checkout = rows.filter(checkout_uuid__in=checkout_uuids).values_list("pk", flat=True)[
            : search.MAX_MATCHES
        ]
        rows = rows.filter(pk__in={*by_request_id, *by_checkout})
    if filters.get("outcome"):
        rows = rows.filter(OUTCOME_CONDITIONS[filters["outcome"]])
    return rows


def _request_lines(merchant: Merchant, calls: Sequence[ApiCall]) -> dict[str, Any]:
    keys = ApiClient.objects.filter(pk__in={call.client_uuid for call in calls})
    names = {key.pk: str(key) for key in keys.only("name", "client_id")}
    # A refused call can name another merchant's order.
    named = {call.checkout_uuid for call in calls if call.checkout_uuid}
    checkouts = Checkout.objects.filter(merchant=merchant, pk__in=named)
    orders: dict[Any, str] = dict(checkouts.values_list("pk", "merchant_order_id"))
    return {
        "rows": [
            _request_line(call)
            | {"key": names.get(call.client_uuid, ""), "order": orders.get(call.checkout_uuid)}
            for call in calls
        ]
    }


def _request_line(call: ApiCall) -> dict[str, Any]:
    docs = f"{reverse('api_docs')}#error-{quote(call.error_code)}" if call.error_code else ""
    return {
        "call": call,
        "act": entries.verb_of(call).replace("-", " ").capitalize(),
        "short_path": lists.shorten_ids(call.path).replace("…", "…\N{WORD JOINER}"),
        "short_id": lists.shorten_ids(call.request_id),
        "badge": entries.badge_of_call(call),
        "docs_url": docs,
    }
