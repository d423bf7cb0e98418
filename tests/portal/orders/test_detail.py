import pytest
from django.test import Client

from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from portal.models import Role
from tests import factories
from tests.portal import stage
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(acme: Merchant) -> Client:
    return stage.browser(stage.person(acme, Role.SUPPORT))


def page_of(checkout: Checkout) -> str:
    return f"/portal/checkouts/{checkout.pk}"


class TestHeldPage:
    def test_counts_down_and_tells_what_is_to_come(self, client: Client, held: Checkout) -> None:
        words = client.get(page_of(held)).content.decode()
        assert "Time to capture" in words and "You have until" in words
        assert "The hold ends by itself, unless it is captured before" in words
        assert 'max="120"' in words

    def test_tells_the_next_attempt(self, client: Client, acme: Merchant) -> None:
        factories.subscribe(acme, url=stage.URL, event_types=["*"])
        held = stage.hold(factories.checkout(acme))
        assert "Attempt 1 of checkout.authorized will be made" in client.get(page_of(held)).content.decode()
        stage.deliver(acme, 500)
        words = client.get(page_of(held)).content.decode()
        assert "Attempt 2 of checkout.authorized will be made" in words
        Delivery.objects.update(next_attempt_at=clock.now())
        stage.deliver(acme, 200)
        assert "will be made" not in client.get(page_of(held)).content.decode()
