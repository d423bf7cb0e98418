"""The home page: what needs attention, figures and charts."""

from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from config.lib.database import replica
from config.lib.web import csp
from payments import money
from portal import pages
from portal.access import requires
from portal.dashboard import charts, first_day, stats
from portal.dashboard.merchant_tasks import WaitingItems
from portal.models import Membership
from portal.templatetags.portal import span

WORDS = {"24h": "24 hours", "7d": "Seven days", "30d": "30 days"}
SWITCH = (("24h", "24 h"), ("7d", "7 d"), ("30d", "30 d"))


@requires("view")
@replica.readable
def home(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show what needs attention, with figures and charts for a time range.

    Until the first capture, the page shows the steps towards it instead of figures and charts.
    """
    waiting = WaitingItems(membership.merchant)
    if not first_day.is_over(membership.merchant):
        return _show_first_day(request, membership, waiting)
    span = request.GET.get("range", "7d")
    span = span if span in stats.RANGES else "7d"
    with timezone.override(ZoneInfo(membership.merchant.time_zone)):
        picture = stats.read_stats(membership.merchant, span, request.GET.get("currency", ""))
        context = _charts(picture) | {"needs": waiting.needs(), "switch": SWITCH, "span_words": WORDS[span]}
    template = "portal/_pictures.html" if pages.is_part_requested(request, "pictures") else "portal/home.html"
    return pages.show_page(request, membership, template, context, here="portal_home", waiting=waiting)


def _show_first_day(request: HttpRequest, membership: Membership, waiting: WaitingItems) -> HttpResponse:
    context = {"day": first_day.first_day_of(membership.merchant), "needs": waiting.needs()}
    page = pages.show_page(
        request, membership, "portal/home_new.html", context, here="portal_home", waiting=waiting
    )
    csp.allow_forms_to(page, settings.CHECKOUT_PAGE_URL)  # the form that makes a test order leads there
    return page


def _charts(picture: stats.Picture) -> dict[str, Any]:
    return {
        "picture": picture,
        "days": charts.days_words(picture),
        "figures": _list_figures(picture),
        "outcomes": charts.outcomes(picture),
        "volume": charts.volume(picture),
        "holds": charts.holds(picture),
        "attempts": charts.attempts(picture),
    }


def _list_figures(picture: stats.Picture) -> list[dict[str, Any]]:
    now, before = picture.now, picture.before
    median, was = now.hold(0.5), before.hold(0.5)
    return [
        {
            "name": "Captured",
            "value": money.display(now.captured_amount, picture.currency),
            "note": _count_words(now.captured_count, "payment"),
        },
        {
            "name": "Refunded",
            "value": money.display(now.refunded_amount, picture.currency),
            "note": _count_words(now.refunded_count, "payment"),
        },
        {
            "name": "Hold to capture, median",
            "value": span(median) if median is not None else "–",
            "note": f"was {span(was)}" if was is not None else _count_words(sum(now.hold_times), "capture"),
        },
        {
            "name": "Attempts answered 2xx",
            "value": charts.percent(now.success),
            "note": _answered_words(now, before.success),
        },
    ]


def _answered_words(now: stats.Totals, was: float | None) -> str:
    return f"{now.delivered:,} of {now.attempts:,}" + (
        f", was {charts.percent(was)}" if was is not None else ""
    )


def _count_words(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
