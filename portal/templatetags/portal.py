"""Template filters for times, durations, amounts, long words, and the query in the page's URL."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.conf import settings
from django.http import QueryDict
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import conditional_escape, escape
from django.utils.safestring import SafeString, mark_safe

from config.lib.web import origins, units
from payments import money

_SIGNED = re.compile(r"(?<![^ ])[−+][^ <&]{0,20}[0-9][^ <&]{0,6}(?![^ ])")
_NAME = re.compile(r"\b([a-z]+\.)([a-z_]+\b:?)")
_SLASH = re.compile(r"(?<=\w)/(?=\w)")

HOLD_ENDS = 120  # the seconds from a hold to its lapse; up to then, `offset` shows tenths of a second
FONT_SIZE = 12  # the size of a chart's text in pixels, unless the reader chooses larger text
FITS_A_LINE = 24  # characters of an id that fit in a line

register = template.Library()
register.filter("amount", money.display)
register.filter(units.whole_ids)


@register.filter
def escape_code(text: str) -> SafeString:
    """Escape text for the content of an element. Quotes are not escaped, which makes a page with code smaller."""
    return mark_safe(conditional_escape(text).replace("&quot;", '"').replace("&#x27;", "'"))  # noqa: S308


@register.simple_tag(takes_context=True)
def passkey_page(context: dict[str, Any]) -> str:
    """Return the page's address on the host to which passkeys belong, or "" if the page is on that host."""
    request = context["request"]
    is_on_host = origins.host_of(f"//{request.get_host()}") == origins.host_of(settings.PORTAL_URL)
    return "" if is_on_host else f"{settings.PORTAL_URL}{request.path}"


@register.filter
def when(moment: datetime | None, is_of_today: bool = True) -> str:
    """Show a time in the merchant's time zone. For today, show only the time of day, otherwise also the date.

    Pass False as `is_of_today` in a list that also has other days. A time from today then begins with
    "Today".
    """
    return _write_moment(moment, "H:i", is_of_today)


@register.filter
def when_exactly(moment: datetime | None, is_of_today: bool = True) -> str:
    """Show a time as `when` does, but with seconds."""
    return _write_moment(moment, "H:i:s", is_of_today)


def _write_moment(moment: datetime | None, clock: str, is_of_today: bool) -> str:
    if not moment:
        return ""
    day_words = day(moment) or ("" if is_of_today else "Today")
    return ", ".join(filter(None, (day_words, date_format(timezone.localtime(moment), clock))))


@register.filter
def deadline(moment: datetime) -> str:
    """Show a deadline that is days away, in the merchant's time zone, such as "Sun 6 December, 21:02".

    The year is shown if it is not the current year.
    """
    local, today = timezone.localtime(moment), timezone.localdate()
    return date_format(local, "D j F, H:i" if local.year == today.year else "D j F Y, H:i")


@register.filter
def day(moment: datetime) -> str:
    """Show the day of a time in the merchant's time zone, without the current year. For today, return ""."""
    local, today = timezone.localtime(moment), timezone.localdate()
    if local.date() == today:
        return ""
    return date_format(local, "j M" if local.year == today.year else "j M Y")


@register.filter("clock")
def time_of(moment: datetime) -> str:
    """Show the time of day with seconds."""
    return date_format(timezone.localtime(moment), "H:i:s")


def span(seconds: float) -> str:
    """Return a duration in words without line breaks, such as "340 ms" or "1.2 s"."""
    if seconds < 0.01:
        return "under 10\N{NO-BREAK SPACE}ms"
    if round(milliseconds := seconds * 1000) < 1000:
        return f"{milliseconds:.0f}\N{NO-BREAK SPACE}ms"
    return f"{seconds:.1f}\N{NO-BREAK SPACE}s" if seconds < 10 else f"{seconds:.0f}\N{NO-BREAK SPACE}s"


@register.filter
def seconds(milliseconds: Any) -> str:
    """Show a number of milliseconds as a duration, such as "340 ms" or "1.2 s"."""
    return "" if milliseconds in (None, "") else span(milliseconds / 1000)


@register.filter
def letters(pixels: float) -> str:
    """Return a chart's vertical position as a multiple of the font size, so that the chart grows with its text."""
    return f"{round(pixels / FONT_SIZE, 3):g}em"


@register.filter
def offset(span: timedelta | None) -> str:
    """Show the time since the hold: 0 s for the hold itself, +0.02 s, +21.4 s, +2:00, +2 h, +5 d.

    For a time before the hold, return "".
    """
    passed = -1 if span is None else span.total_seconds()
    if not passed:
        return "0\N{NO-BREAK SPACE}s"
    if passed < 0.005:
        return ""
    if round(passed, 1) < HOLD_ENDS:
        return f"+{passed:.{2 if passed < 0.1 else 1}f}\N{NO-BREAK SPACE}s"
    if passed < 3600:
        minutes, rest = divmod(max(HOLD_ENDS, int(passed)), 60)
        return f"+{minutes}:{rest:02}"
    size, unit = (3600, "h") if passed < 2 * 86_400 else (86_400, "d")
    return f"+{passed / size:.0f}\N{NO-BREAK SPACE}{unit}"


@register.filter
def shortened(identifier: str) -> str:
    """Shorten a long id to its beginning and its end, so that it fits in a line.

    A short id stays unchanged.
    """
    return identifier if len(identifier) <= FITS_A_LINE else f"{identifier[:12]}…{identifier[-6:]}"


@register.filter
def whole_sums(words: str) -> SafeString:
    """Return the words as HTML in which an amount and its sign are always on the same line."""
    return mark_safe(_SIGNED.sub(r'<span class="whole">\g<0></span>', escape(words)))  # noqa: S308 - escaped before


@register.filter
def whole_names(words: str) -> SafeString:
    """Return text as HTML in which a line does not break between an event's name and the colon after it.

    `words` is text, or HTML without dots in its tags. A name that is too long for one line breaks after its
    dot. Without this filter, browsers would break it anywhere.
    """
    whole = r'<span class="name">\g<1><wbr>\g<2></span>'
    return mark_safe(_NAME.sub(whole, conditional_escape(words)))  # noqa: S308 - escaped before


@register.filter
def parted(path: str) -> SafeString:
    """Return a path as HTML in which a line can break after each slash except the first."""
    return mark_safe(_SLASH.sub("/<wbr>", escape(path)))  # noqa: S308 - escaped before


@register.filter
def email_parts(email: str) -> tuple[str, str]:
    """Return the parts of an e-mail address before and after its @."""
    name, _, host = email.rpartition("@")
    return name, host


@register.simple_tag(takes_context=True)
def query(context: dict[str, Any], parts: Mapping[str, str] | None = None, **changes: Any) -> str:
    """Return the query of this page's URL with these changes, and without the cursor.

    An empty value removes its parameter.
    """
    parameters: QueryDict = context["request"].GET.copy()
    parameters.pop("cursor", None)
    for name, value in {**(parts or {}), **changes}.items():
        if value in ("", None):
            parameters.pop(name, None)
        else:
            parameters[name] = str(value)
    return f"?{parameters.urlencode()}" if parameters else "?"
