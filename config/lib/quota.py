"""Quotas: limits on the number of rows within a period.

Callers must `lock` the counted keys before they count. Otherwise, concurrent transactions would not count
each other's rows, and could exceed the maximum together.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import CharField, Q, QuerySet

from config.lib.database import queries, statements

SITE_FACTOR = 10  # the limit for an IPv6 /48 is this many times the limit for a /64 (rule limit.address)
HAS_SITE = ~Q(site_digest="")  # matches the rows of IPv6 callers; the indexes by site contain only these rows


class Limit(NamedTuple):
    """At most `maximum` rows in any period with the length `within`."""

    maximum: int
    within: timedelta

    def of_site(self) -> "Limit":
        """Return the larger limit for an IPv6 /48. Call it on the limit for a single address."""
        return self._replace(maximum=self.maximum * SITE_FACTOR)


def site_digest_field() -> "CharField[str, str]":
    """Return a model field for the digest of the caller's /48. Rows that are counted by address need it.

    `address.caller_digests` returns its values.
    """
    return CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Of an IPv6 address's /48; empty for IPv4.",
    )


def lock(*keys: str) -> None:
    """Serialize the transactions that count the same keys, with advisory locks in the order of the keys."""
    names = [f"quota:{key}" for key in sorted(set(keys))]
    queries.execute(statements.LOCK_NAMES, [names])


def placeholders(name: str, count: int) -> str:
    """Return the placeholders for `IN (…)` in a raw statement. `parameters` returns their values."""
    return ", ".join(f"%({name}_{place})s" for place in range(count))


def parameters(name: str, digests: Sequence[str | None]) -> dict[str, str | None]:
    """Return the digests under which a row is counted, as parameters for a raw statement.

    `IN (…)` with one digest costs as much as `=`. With an array (`= ANY`), PostgreSQL would not read in index
    order.
    """
    return {f"{name}_{place}": digest for place, digest in enumerate(digests)}


def lock_digests(purpose: str, *digests: str) -> None:
    """Serialize the transactions that count rows with these digests. Skip empty digests."""
    lock(*(f"{purpose}:{digest}" for digest in digests if digest))


def locked_until(rows: QuerySet[Any], limit: Limit, now: datetime) -> datetime | None:
    """Return the time until which no more rows are allowed, or None if a row is allowed now.

    Once a period contains the maximum number of rows, no row is allowed until one period after the last row.
    """
    latest = rows.filter(created_at__gt=now - 2 * limit.within).order_by("-created_at")
    times = list(latest.values_list("created_at", flat=True)[: limit.maximum])
    if len(times) < limit.maximum or times[0] - times[-1] >= limit.within:
        return None
    until = times[0] + limit.within
    return until if until > now else None
