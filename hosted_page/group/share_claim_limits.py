"""Rate limit for claiming shares through group links, per network."""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from config.lib import batches, clock, quota
from config.lib.quota import Limit
from config.lib.web import address as network
from hosted_page.models import ShareTake

PER_ADDRESS = Limit(30, timedelta(hours=1))
RETENTION = timedelta(hours=2)  # how long rows are kept; must exceed the period of the limit


class TooManyClaims(Exception):
    """The network has claimed as many shares as the limit allows. It can claim the next share at `until`."""

    def __init__(self, until: datetime, now: datetime) -> None:
        super().__init__("Too many shares were taken.")
        self.until, self.now = until, now


def count_claim(address: str) -> None:
    """Count a share against the limit. Call it in the transaction that takes the share.

    Raises TooManyClaims. Rules group.takes, limit.address.
    """
    digests = network.caller_digests("take address", address)
    quota.lock_digests("take", *digests["address_digest"], *digests["site_digest"])
    now = clock.now()
    _check_limit(ShareTake.objects.filter(address_digest__in=digests["address_digest"]), PER_ADDRESS, now)
    claims_of_site = ShareTake.objects.filter(quota.HAS_SITE, site_digest__in=digests["site_digest"])
    if any(digests["site_digest"]):
        _check_limit(claims_of_site, PER_ADDRESS.of_site(), now)
    ShareTake.objects.create(created_at=now, **network.first_digests(digests))


def _check_limit(claims: QuerySet[ShareTake], limit: Limit, now: datetime) -> None:
    """Raise TooManyClaims if the limit is reached. The exception says when the next share can be taken."""
    times = claims.filter(created_at__gt=now - limit.within).order_by("-created_at")
    deciding_time = times.values_list("created_at", flat=True)[limit.maximum - 1 : limit.maximum].first()
    if deciding_time is not None:
        raise TooManyClaims(deciding_time + limit.within, now)


def delete_old() -> None:
    """Delete the rows that are so old that the limit no longer counts them."""
    batches.delete(ShareTake.objects.filter(pk__lt=clock.first_id(clock.now() - RETENTION)))
