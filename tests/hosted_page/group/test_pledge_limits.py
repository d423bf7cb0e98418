"""The limit on the cards that a number can use for pledges within a day."""

from datetime import timedelta

import pytest

from checkout import cancellations
from config.lib.quota import Limit
from hosted_page.models import SmsMessage
from hosted_page.steps import declines
from payments.models import Merchant
from tests import factories, mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate


@pytest.mark.django_db
@pytest.mark.usefixtures("posted")
@pytest.mark.rule("pledge.cards")
def test_pledges_of_ended_orders_count_for_a_day(acme: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declines, "PER_PHONE_OF_PLEDGE", Limit(2, timedelta(days=1)))
    statuses = []
    for _ in range(3):
        order = factories.checkout(acme)
        (share,) = mates.split(order, 2000, everyone_first=True)
        SmsMessage.objects.all().delete()  # otherwise the number must wait for its next code
        finn = Mate(share)
        finn.pay()
        statuses.append(finn.status())
        cancellations.cancel(acme, order.pk, cause=CAUSE)
    assert statuses == ["pledged", "pledged", "open"]
