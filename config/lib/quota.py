"""Quotas: a maximum of rows within a time. Callers `lock` the counted keys first, so as not to miss a row."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import CharField, Q, QuerySet

from config.lib.database import queries, statements

SITE_FACTOR = 10  # the limit of an IPv6 /48, in multiples of the limit of a /64 (rule limit.address)
HAS_SITE = ~Q(site_digest="")  # the rows of IPv6 callers: indexes by site have only these


class Limit(NamedTuple):
    """At most `maximum` rows in any period of the length `within`."""

    maximum: int
    within: timedelta

    def of_site(self) -> "Limit":
        """Return the limit of a /48, given that this is the limit of an address."""
        return self._replace(maximum=self.maximum * SITE_FACTOR)


def site_digest() -> "CharField[str, str]":
    """Return the model field for the caller's /48, for rows counted by address. address.digests fills it."""
    return CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Of an IPv6 address's /48; empty for IPv4.",
    )


def lock(*keys: str) -> None:
    """Serialize the transactions that count the same keys, by advisory locks in the order of the keys."""
    names = [f"quota:{key}" for key in sorted(set(keys))]
    queries.execute(statements.LOCK_NAMES, [names])


def placeholders(name: str, count: int) -> str:
    """Return the placeholders for `IN (…)` in a raw statement. `parameters` of this name fill them in."""
    return ", ".join(f"%({name}_{place})s" for place in range(count))


def parameters(name: str, digests: Sequence[str | None]) -> dict[str, str | None]:
    """Return the digests under which a row is counted, as parameters of a raw statement.

    A list of one digest costs as much as `=`. With an array (`= ANY`), PostgreSQL would not read in index
    order.
    """
    return {f"{name}_{place}": digest for place, digest in enumerate(digests)}


def lock_digests(purpose: str, *digests: str) -> None:
    """Serialize the transactions that count rows with these digests. An empty digest counts no rows."""
    lock(*(f"{purpose}:{digest}" for digest in digests if digest))


def locked_until(rows: QuerySet[Any], limit: Limit, now: datetime) -> datetime | None:
    """Return until when no row may follow these, or None if one may follow now.

    After the maximum of rows within the time, no row may follow for the same time again.
    """
    latest = rows.filter(created_at__gt=now - 2 * limit.within).order_by("-created_at")
    times = list(latest.values_list("created_at", flat=True)[: limit.maximum])
    if len(times) < limit.maximum or times[0] - times[-1] >= limit.within:
        return None
    until = times[0] + limit.within
    return until if until > now else None
