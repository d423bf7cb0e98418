"""The home page: items that need attention, figures, and charts."""

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
from portal.dashboard import charts, checklist, first_day, stats
from portal.dashboard.merchant_tasks import WaitingItems
from portal.models import Membership
from portal.templatetags.portal import span
from webhooks import health
from webhooks.models import Subscription

PERIOD_WORDS = {"24h": "24 hours", "7d": "Seven days", "30d": "30 days"}
PERIODS = (("24h", "24 h"), ("7d", "7 d"), ("30d", "30 d"))


@requires("view")
@replica.readable
def show_home(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the items that need attention, with figures and charts for a time range.

    Until the first capture, the page shows the steps towards it instead of figures and charts.
    """
    waiting = WaitingItems(membership.merchant)
    if not checklist.has_captured(membership.merchant):
        return _show_first_day(request, membership, waiting)
    period = request.GET.get("range", "7d")
    period = period if period in stats.RANGES else "7d"
    with timezone.override(ZoneInfo(membership.merchant.time_zone)):
        picture = stats.read_stats(membership.merchant, period, request.GET.get("currency", ""))
        context = _chart_context(picture, waiting.subscription) | {
            "needs": waiting.list_tasks(),
            "switch": PERIODS,
        }
        context["span_words"] = PERIOD_WORDS[period]
    template = "portal/_pictures.html" if pages.is_part_requested(request, "pictures") else "portal/home.html"
    return pages.show_page(request, membership, template, context, here="portal_home", waiting=waiting)


def _show_first_day(request: HttpRequest, membership: Membership, waiting: WaitingItems) -> HttpResponse:
    context = {"day": first_day.first_day_of(membership.merchant), "needs": waiting.list_tasks()}
    page = pages.show_page(
        request, membership, "portal/home_new.html", context, here="portal_home", waiting=waiting
    )
    csp.allow_forms_to(page, settings.CHECKOUT_PAGE_URL)  # the form for a test order redirects to that page
    return page


def _chart_context(picture: stats.Picture, subscription: Subscription | None) -> dict[str, Any]:
    latest = health.summarize_attempts(subscription) if subscription else None
    return {
        "picture": picture,
        "days": charts.days_words(picture),
        "figures": _list_figures(picture),
        "outcomes": charts.outcome_chart(picture),
        "volume": charts.volume_chart(picture),
        "holds": charts.hold_chart(picture),
        "attempts": charts.attempt_chart(picture, latest),
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
            "name": "Orders refunded",
            "value": money.display(now.refunded_amount, picture.currency),
            "note": _count_words(now.refunded_count, "order"),
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


def _answered_words(now: stats.Totals, rate_before: float | None) -> str:
    return f"{now.delivered:,} of {now.attempts:,}" + (
        f", was {charts.percent(rate_before)}" if rate_before is not None else ""
    )


def _count_words(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
