"""The check of a webhook URL that a merchant names.

It is limited, because it asks that merchant's name servers.
"""

from typing import NewType

from django.conf import settings

from config.lib import connection_release, limits
from config.lib.bulkhead import Busy, OneEach
from payments.models import Merchant
from webhooks import targets

CheckedUrl = NewType("CheckedUrl", str)
PLACES = OneEach(2)  # per process; a merchant has at most one


class TooManyChecks(Exception):
    """The merchant has had too many addresses checked within a minute."""

    retry_after = 60


def checked(merchant: Merchant, url: str) -> CheckedUrl:
    """Check for up to three seconds that a URL leads to the internet; return it in the form to store.

    Do not call it in a transaction. Raises targets.TargetRefused, TooManyChecks, bulkhead.Busy.
    """
    normal = targets.check_url(url, allow_loopback=settings.WEBHOOK_LOOPBACK)
    if not targets.asks_names(normal):
        return CheckedUrl(normal)
    if not limits.spend("url_checks", str(merchant.pk)):
        raise TooManyChecks
    with PLACES.place(merchant.pk) as is_free:
        if not is_free:
            raise Busy
        connection_release.begin()
        return CheckedUrl(targets.vet(normal, allow_loopback=settings.WEBHOOK_LOOPBACK))
