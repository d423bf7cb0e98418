"""What needs the merchant, the worst first."""

import re

import pytest
from django.test import Client

from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from portal.dashboard.needs import Waiting
from portal.models import Role
from tests import factories
from tests.portal import stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(acme: Merchant) -> Client:
    return stage.browser(stage.person(acme, Role.VIEWER))


class TestNeeds:
    def test_are_told_worst_first(self, acme: Merchant, client: Client) -> None:
        factories.subscribe(acme, url=stage.URL, event_types=["*"])
        stage.parked(acme)
        stage.parked(acme)
        lapsed = stage.hold(factories.checkout(acme))
        Checkout.objects.filter(pk=lapsed.pk).update(
            status="voided", void_reason="auth_expired", voided_at=clock.now()
        )
        page = client.get("/portal").content.decode()
        assert page.index("2 deliveries are parked") < page.index("1 hold lapsed before a capture")
        assert "£90.00 was released" in page
        assert re.search(r'Home <span class="waiting-count">2<', page) and re.search(
            r'Deliveries <span class="waiting-count">2<', page
        )

    def test_are_the_merchants_own(self, acme: Merchant, rival: Merchant) -> None:
        factories.subscribe(rival, url=stage.URL, event_types=["*"])
        stage.parked(rival)
        assert Waiting(acme).needs() == [] and len(Waiting(rival).needs()) == 1
