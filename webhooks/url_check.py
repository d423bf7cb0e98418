"""Checks a webhook URL that a merchant enters.

The number of checks is limited, because each check sends queries to the name servers of the URL's domain.
"""

from typing import NewType

from django.conf import settings

from config.lib import connection_release, limits
from config.lib.bulkhead import Busy, KeyedLimit
from payments.models import Merchant
from webhooks import targets

CheckedUrl = NewType("CheckedUrl", str)
# Maximum number of concurrent checks per process. Each merchant can run only one check at a time.
CHECK_SLOTS = KeyedLimit(2)


class TooManyChecks(Exception):
    """The merchant has requested too many checks within a minute."""

    retry_after = 60


def check_merchant_url(merchant: Merchant, url: str) -> CheckedUrl:
    """Check that a URL has only public addresses, and return it in the form to store.

    The check takes up to 3 s, so do not call it in a transaction. Raises targets.TargetRefused, TooManyChecks,
    bulkhead.Busy.
    """
    normal = targets.check_url(url, allow_loopback=settings.WEBHOOK_LOOPBACK)
    if not targets.needs_name_resolution(normal):
        return CheckedUrl(normal)
    if not limits.spend("url_checks", str(merchant.pk)):
        raise TooManyChecks
    with CHECK_SLOTS.place(merchant.pk) as is_free:
        if not is_free:
            raise Busy
        connection_release.release()
        return CheckedUrl(targets.check_resolved_url(normal, allow_loopback=settings.WEBHOOK_LOOPBACK))
