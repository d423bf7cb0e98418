"""How many shares a network may take by groups' links, so that nobody keeps one table after another from paying."""

from datetime import datetime, timedelta

from config.lib import batches, clock, crypto, quota
from config.lib.quota import Limit
from config.lib.web import address as network
from hosted_page.models import ShareTake

PER_ADDRESS = Limit(30, timedelta(hours=1))
KEPT = timedelta(hours=2)  # longer than the limit looks back


class TooManyTakes(Exception):
    """The network has taken enough shares; it may take one again at `until`."""

    def __init__(self, until: datetime, now: datetime) -> None:
        super().__init__("Too many shares were taken.")
        self.until, self.now = until, now


def admit(address: str) -> None:
    """Count a share that is about to be taken, in the transaction that takes it. Raises TooManyTakes.

    Rule group.takes.
    """
    digests = crypto.keyed_digests("take address", network.network(address))
    quota.lock(*(f"take:{digest}" for digest in digests))
    now = clock.now()
    taken = ShareTake.objects.filter(address_digest__in=digests, created_at__gt=now - PER_ADDRESS.within)
    times = taken.order_by("-created_at").values_list("created_at", flat=True)
    deciding = times[PER_ADDRESS.maximum - 1 : PER_ADDRESS.maximum].first()
    if deciding is not None:
        raise TooManyTakes(deciding + PER_ADDRESS.within, now)
    ShareTake.objects.create(address_digest=digests[0], created_at=now)


def delete_old() -> None:
    """Delete what the limit does not look at any more."""
    batches.delete(ShareTake.objects.filter(pk__lt=clock.first_id(clock.now() - KEPT)))
