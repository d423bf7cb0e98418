"""The page for orders that customers split with mates, and its CSV file. Rule portal.groups."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone

from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from config.lib.database import replica
from payments import money
from payments.models import Merchant
from portal import audit, files, lists
from portal.access import requires
from portal.dashboard import charts, stats
from portal.lists import Listing
from portal.models import Membership
from portal.orders import groups
from portal.orders.groups import GroupFigures
from portal.views.home import PERIOD_WORDS, PERIODS

HEADING = (
    *("order_id", "checkout_uuid", "status", "group", "amount", "currency"),
    *("mates", "mates_paid", "from_mates", "created_at", "all_paid_after_seconds"),
)


class Period(forms.Form):
    """The form for the period of the figures, of the list below them, and of its CSV file."""

    range = forms.ChoiceField(required=False, choices=PERIODS)

    @property
    def chosen(self) -> str:
        """The chosen period, or seven days if the form has no valid period."""
        return (self.is_valid() and self.cleaned_data["range"]) or "7d"


@requires("view")
@replica.readable
def list_groups(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the figures for a period, and its split orders, newest first."""
    merchant, form = membership.merchant, Period(request.GET or None)
    context = partial(_list_context, merchant, form.chosen)
    return lists.show_list(
        request, membership, Listing("groups", form, _orders_of_period(merchant, form), context)
    )


@requires("export")
def export_groups(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """Return the split orders of a period as a CSV file."""
    form = Period(request.GET or None)
    source = files.Source(_orders_of_period(membership.merchant, form), _file_lines)
    answer = files.csv_response(membership, f"groups-{clock.now():%Y-%m-%d}.csv", HEADING, source)
    audit.record(request, membership, "exported", file="groups", filters={"range": form.chosen})
    return answer


def _orders_of_period(merchant: Merchant, form: Period) -> QuerySet[Checkout]:
    shares = Prefetch("payment_requests", PaymentRequest.objects.order_by("position"))
    begin = stats.range_begin(merchant, form.chosen)
    rows = groups.split_orders(merchant).filter(created_at__gte=begin)
    return groups.with_open_dispute(rows).prefetch_related(shares)


def _list_context(merchant: Merchant, chosen: str, checkouts: Sequence[Checkout]) -> dict[str, Any]:
    with timezone.override(ZoneInfo(merchant.time_zone)):
        picture = stats.read_stats(merchant, chosen)
        end = clock.now()
        now = groups.read_figures(merchant, picture.currency, picture.begin, end)
        before = groups.read_figures(
            merchant, picture.currency, picture.begin - (end - picture.begin), picture.begin
        )
        chart = charts.share_chart(groups.picture_of_shares(merchant, picture))
        return {
            "picture": picture,
            "days": charts.days_words(picture),
            "switch": PERIODS,
            "span_words": PERIOD_WORDS[chosen],
            "figures": _list_figures(picture, now, before),
            "shares": chart,
            "within": _payment_times(merchant),
            "ways": _split_figures(now),
            "rows": [_list_row(checkout) for checkout in checkouts],
        }


def _list_figures(picture: stats.Picture, now: GroupFigures, before: GroupFigures) -> list[dict[str, str]]:
    rate, previous_rate = _percent(now.paid, now.shares), _percent(before.paid, before.shares)
    share_split = _percent(now.orders, now.captured)
    return [
        {
            "name": "Orders split",
            "value": f"{now.orders:,}",
            "note": f"of {now.captured:,} captured" + (f", {share_split}" if share_split else ""),
        },
        {
            "name": "Mates paid",
            "value": f"{now.paid:,} of {now.shares:,}",
            "note": f"{rate}, was {previous_rate}" if rate and previous_rate else rate,
        },
        {
            "name": "Came in from mates",
            "value": money.display(now.paid_amount, picture.currency),
            "note": f"of {money.display(now.share_amount, picture.currency)} asked",
        },
        {
            "name": "Mates who opted in",
            "value": f"{now.opted_in:,}",
            "note": f"{share} of those who paid" if (share := _percent(now.opted_in, now.paid)) else "",
        },
    ]


def _payment_times(merchant: Merchant) -> dict[str, Any]:
    times = groups.read_payment_times(merchant)
    median: timedelta | None = times["median"]
    return times | {"median": groups.wait_words(median) if median is not None else ""}


def _split_figures(figures: GroupFigures) -> list[dict[str, str]]:
    counts = {
        "Equally": figures.equal,
        "Different amounts": figures.orders - figures.equal - figures.by_item,
        "By item": figures.by_item,
    }
    return [
        {"name": name, "value": f"{count:,}", "note": _percent(count, figures.orders)}
        for name, count in counts.items()
    ]


def _percent(part: int, whole: int) -> str:
    return f"{round(100 * part / whole)}%" if whole else ""


def _list_row(checkout: Checkout) -> dict[str, Any]:
    shares = list(checkout.payment_requests.all())
    paid = sum(share.paid_at is not None for share in shares)
    after = groups.all_paid_after(checkout, shares)
    return {
        "checkout": checkout,
        "amount": money.display(checkout.amount, checkout.currency),
        "badge": groups.badge_of(checkout, shares),
        "mates": f"{paid} of {len(shares)}",
        "from_mates": money.display(groups.amount_from_mates(shares), checkout.currency)
        if checkout.captured_at
        else "",
        "after": groups.wait_words(after) if after is not None else "",
    }


def _file_lines(checkouts: list[Checkout]) -> Iterator[list[Any]]:
    for checkout in checkouts:
        shares = list(checkout.payment_requests.all())
        after = groups.all_paid_after(checkout, shares)
        yield [
            checkout.merchant_order_id,
            str(checkout.pk),
            checkout.status,
            groups.badge_of(checkout, shares).words,
            money.plain_amount(checkout.amount, checkout.currency),
            checkout.currency,
            len(shares),
            sum(share.paid_at is not None for share in shares),
            money.plain_amount(groups.amount_from_mates(shares), checkout.currency),
            clock.iso(checkout.created_at),
            round(after.total_seconds()) if after is not None else "",
        ]
