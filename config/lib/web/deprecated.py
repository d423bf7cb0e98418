"""What of the API is deprecated, and until when it goes on: a table, and what answers say of it.

Rule docs.deprecation. Nothing is deprecated now.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.utils.http import http_date

MONTHS = 12  # at least, from the announcement on
SHORTEST = timedelta(days=366)


class TooSoon(Exception):
    """What is deprecated has not the months that merchants were promised."""


@dataclass(frozen=True)
class Deprecated:
    """Calls whose path begins with `address`; without a method all of them. `words` say what to use instead."""

    address: str
    since: datetime
    until: datetime
    words: str
    method: str = ""

    def __post_init__(self) -> None:
        if self.until - self.since < SHORTEST:
            raise TooSoon(self.address)

    def holds_for(self, method: str, path: str) -> bool:
        """Return whether a call is one of these."""
        return path.startswith(self.address) and self.method in ("", method)


TABLE: tuple[Deprecated, ...] = ()


def headers(method: str, path: str) -> dict[str, str]:
    """Return what an answer says of its call: Deprecation (RFC 9745), Sunset (RFC 8594), Link; nothing if it stays."""
    for row in TABLE:
        if row.holds_for(method, path):
            return {
                "Deprecation": f"@{int(row.since.timestamp())}",
                "Sunset": http_date(row.until.timestamp()),
                "Link": f'<{settings.BASE_URL}/api/docs#versions>; rel="deprecation"; type="text/html"',
            }
    return {}


def told() -> str:
    """Return the table in words, as CommonMark."""
    rows = (
        f"- `{row.method or 'Every'} {row.address}`: deprecated since {row.since.astimezone(UTC):%-d %B %Y}, "
        f"ends on {row.until.astimezone(UTC):%-d %B %Y}. {row.words}"
        for row in TABLE
    )
    return "\n".join(rows) or "Nothing is deprecated today."
