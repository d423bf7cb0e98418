from datetime import timedelta

import pytest

from checkout import expiry
from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from tests.portal import stage
from webhooks.models import Attempt


@pytest.fixture
def subscribed(acme: Merchant) -> Merchant:
    stage.saved(acme)
    return acme


def lapse(checkout: Checkout) -> None:
    """Simulate that two minutes pass: move the times back, and let the hold lapse."""
    earlier = timedelta(seconds=150)
    rows = Checkout.objects.filter(pk=checkout.pk)
    rows.update(capture_before=clock.now(), authorized_at=clock.now() - timedelta(seconds=120))
    for attempt in Attempt.objects.all():
        Attempt.objects.filter(pk=attempt.pk).update(started_at=attempt.started_at - earlier)
    expiry.expire_one_if_due(checkout.pk)
