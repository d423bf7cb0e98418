"""The list of the merchant's tasks, most urgent first."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout import captures
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from payments import money
from payments.models import Dispute, Merchant
from portal.dashboard.merchant_tasks import WaitingItems
from portal.models import Role
from portal.templatetags.portal import deadline
from tests import factories, mates
from tests.factories import CAUSE
from tests.outside import decide, dispute
from tests.portal import stage
from webhooks.models import Delivery, Endpoint, Event, Subscription

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.VIEWER)


def displayed(moment: datetime) -> str:
    """Return a deadline as the portal shows it to a merchant in London."""
    with timezone.override("Europe/London"):
        return deadline(moment)


class TestNeeds:
    def test_are_listed_most_urgent_first(self, acme: Merchant, client: Client) -> None:
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

    def test_are_only_those_of_the_merchant(self, acme: Merchant, rival: Merchant) -> None:
        factories.subscribe(rival, url=stage.URL, event_types=["*"])
        stage.parked(rival)
        assert WaitingItems(acme).list_tasks() == [] and len(WaitingItems(rival).list_tasks()) == 1

    def test_name_a_webhook_address_that_awaits_approval(self, acme: Merchant, client: Client) -> None:
        factories.subscribe(acme, url=stage.URL, event_types=["*"])
        assert WaitingItems(acme).list_tasks() == []
        Subscription.objects.update(is_approved=False)
        stage.parked(acme)
        page = client.get("/portal").content.decode()
        assert page.index("1 delivery is parked") < page.index("Your webhook address awaits approval")
        assert stage.URL in page and 'href="/portal/webhooks#approval"' in page
        Subscription.objects.update(event_types=["checkout.voided"])
        assert len(WaitingItems(acme).list_tasks()) == 1, "it asks for no personal data"

    @pytest.mark.rule("dispute.told")
    @pytest.mark.usefixtures("posted")
    def test_of_disputes_name_the_recipient_and_deadline_for_evidence(
        self, acme: Merchant, captured: Checkout, client: Client, settings: Settings
    ) -> None:
        settings.SUPPORT_EMAIL = "help@checkout.example"
        found = dispute(captured.payment)
        due = clock.now() + timedelta(days=12)
        Dispute.objects.update(respond_by=due)
        page = client.get("/portal").content.decode()
        assert "A customer disputes £90.00 (Visa ending 4242)" in page
        assert f"Send your evidence to help@checkout.example by {displayed(due)}" in page
        assert f'href="/portal/checkouts/{captured.pk}"' in page
        page = client.get(f"/portal/checkouts/{captured.pk}").content.decode()
        assert f'href="mailto:help@checkout.example?subject=Dispute%20{captured.merchant_order_id}"' in page
        decide(found, is_won=True)
        assert WaitingItems(acme).list_tasks() == []

    @pytest.mark.rule("dispute.told")
    @pytest.mark.usefixtures("posted")
    def test_of_a_dispute_past_its_deadline_say_so(
        self, captured: Checkout, client: Client, settings: Settings
    ) -> None:
        settings.SUPPORT_EMAIL = "help@checkout.example"
        dispute(captured.payment)
        due = clock.now() - timedelta(days=1)
        Dispute.objects.update(respond_by=due)
        page = client.get("/portal").content.decode()
        assert (
            f"Evidence was due {displayed(due)}. Ask help@checkout.example if it can still be sent." in page
        )
        page = client.get(f"/portal/checkouts/{captured.pk}").content.decode()
        assert "Evidence was due " in page and "and ask if it still counts" in page

    @pytest.mark.usefixtures("posted")
    def test_of_several_disputes_lead_to_the_most_urgent(
        self, acme: Merchant, captured: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        other = captures.capture(acme, pay(factories.checkout(acme)).pk, cause=CAUSE)
        late, due = clock.now() - timedelta(days=1), clock.now() + timedelta(days=3)
        Dispute.objects.filter(pk=dispute(captured.payment).pk).update(respond_by=late)
        urgent = dispute(other.payment)
        Dispute.objects.filter(pk=urgent.pk).update(respond_by=due)
        (need,) = WaitingItems(acme).list_tasks()
        assert need.title == "2 payments are disputed: £180.00" and need.address.endswith(str(other.pk))
        assert f" by {displayed(due)}." in need.text and "Evidence was due" not in need.text

    @pytest.mark.rule("dispute.told")
    @pytest.mark.usefixtures("posted")
    def test_of_a_mates_dispute_name_the_mates_card(
        self, acme: Merchant, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0], card="5555555555554444")
        mates.settled(shares[0])
        shares[0].refresh_from_db()
        dispute(shares[0].payment)
        (need,) = WaitingItems(acme).list_tasks()
        amount = money.display(shares[0].amount, order.currency)
        assert need.title == f"A mate disputes {amount} (Mastercard ending 4444)"


def test_a_failing_endpoint_promises_no_retry_of_parked_deliveries(acme: Merchant) -> None:
    endpoint = stage.saved(acme)
    Endpoint.objects.create(subscription=endpoint, failing_since=clock.now(), last_error="HTTP 400")
    (need,) = WaitingItems(acme).list_tasks()
    assert "HTTP 400. Deliveries that are not parked are retried automatically." in need.text


class TestParkedDeliveries:
    def test_that_no_resend_can_help_are_left_out(self, acme: Merchant) -> None:
        factories.subscribe(acme, url=stage.URL, event_types=["*"])
        over = stage.parked(acme)
        Event.objects.filter(pk=over.event_id).update(
            type="checkout.authorized", valid_until=clock.now() - timedelta(seconds=1)
        )
        Delivery.objects.filter(pk=over.pk).update(event_type="checkout.authorized")
        assert WaitingItems(acme).parked == 0

    @pytest.mark.rule("event.test")
    def test_of_test_events_are_left_out(self, acme: Merchant) -> None:
        factories.subscribe(acme, url=stage.URL, event_types=["*"])
        Delivery.objects.filter(pk=stage.parked(acme).pk).update(event_type="webhook.test")
        assert WaitingItems(acme).parked == 0
