"""The table of deprecated calls with their end dates, and the response headers that announce these dates.

Rule docs.deprecation. No call is deprecated now.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.utils.http import http_date

MONTHS = 12  # minimum time between the announcement and the end of a call
SHORTEST = timedelta(days=366)


class TooSoon(Exception):
    """Raised for a deprecated call that would end less than MONTHS after its announcement."""


@dataclass(frozen=True)
class Deprecated:
    """Deprecated calls. Their path begins with `address`. They have one method, or any method.

    `words` name the replacement.
    """

    address: str
    since: datetime
    until: datetime
    words: str
    method: str = ""

    def __post_init__(self) -> None:
        if self.until - self.since < SHORTEST:
            raise TooSoon(self.address)

    def holds_for(self, method: str, path: str) -> bool:
        """Return whether this row deprecates calls with this method and path."""
        return path.startswith(self.address) and self.method in ("", method)


TABLE: tuple[Deprecated, ...] = ()


def deprecation_headers(method: str, path: str) -> dict[str, str]:
    """Return the response headers for a deprecated call, or an empty dict for any other call.

    They are Deprecation (RFC 9745), Sunset (RFC 8594) and Link.
    """
    for row in TABLE:
        if row.holds_for(method, path):
            return {
                "Deprecation": f"@{int(row.since.timestamp())}",
                "Sunset": http_date(row.until.timestamp()),
                "Link": f'<{settings.BASE_URL}/api/docs#versions>; rel="deprecation"; type="text/html"',
            }
    return {}


def table_as_text() -> str:
    """Return the table as text in CommonMark."""
    rows = (
        f"- `{row.method or 'Every'} {row.address}`: deprecated since {row.since.astimezone(UTC):%-d %B %Y}, "
        f"ends on {row.until.astimezone(UTC):%-d %B %Y}. {row.words}"
        for row in TABLE
    )
    return "\n".join(rows) or "No part of the API is deprecated today."
