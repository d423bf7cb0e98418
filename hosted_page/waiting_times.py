"""Writes waiting times as texts."""

from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

MINUTE, HOUR = 60, 3600


def time_until(end: datetime, now: datetime) -> str:
    """Return the time from `now` to `end` as a text, rounded up, such as "in 20 minutes"."""
    seconds = max(1, (end - now).total_seconds())
    if seconds <= 90 * MINUTE:
        minutes = -int(-seconds // MINUTE)
        if minutes == HOUR // MINUTE:
            return _("in an hour")
        return ngettext("in {count} minute", "in {count} minutes", minutes).format(count=minutes)
    hours = -int(-seconds // HOUR)
    return ngettext("in {count} hour", "in {count} hours", hours).format(count=hours)
