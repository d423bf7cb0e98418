"""The delivery log's list: what its filters find, and what it shows."""

import re

import pytest
from django.test import Client

from checkout.models import Checkout
from payments.models import Merchant
from portal import badges
from portal.models import Role
from tests import factories
from tests.portal import stage
from tests.portal.stage import saved
from webhooks.models import Attempt, Delivery, Event

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.OWNER)


class TestList:
    def test_can_be_filtered(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        stage.captured(acme, merchant_order_id="A-1")
        stage.hold(factories.checkout(acme, merchant_order_id="A-2"))
        stage.deliver(acme, 200)

        def orders(**typed: str) -> set[str]:
            page = client.get("/portal/deliveries", typed).content.decode()
            return set(re.findall(r"<bdi>(A-\d)</bdi>", page))

        event = Attempt.objects.get().delivery.event
        assert (
            orders() == orders(q="A-2") == orders(q=str(event.pk)) == orders(outcome="delivered") == {"A-2"}
        )
        assert orders(event_type="checkout.authorized") == {"A-2"}
        assert orders(q="A-1") == orders(outcome="failed") == orders(event_type="checkout.voided") == set()
        assert orders(until="2020-01-01T00:00") == set()

    def test_without_parked_deliveries_says_so_and_shows_each_filter_as_a_chip(
        self, client: Client, acme: Merchant
    ) -> None:
        saved(acme)
        none = client.get("/portal/deliveries?outcome=parked").content.decode()
        assert "Every delivery arrived, is still being tried, or is no longer needed." in none
        assert "No parked deliveries" in none and "<bdi>Parked</bdi>" in none
        typed = {"outcome": "parked", "q": "A-1", "event_type": "webhook.test", "since": "2026-01-01T00:00"}
        more = client.get("/portal/deliveries", typed).content.decode()
        assert "No deliveries match" in more and more.count('class="chip"') == 4
        assert "<bdi>since 1 Jan" in more

    def test_shows_parked_deliveries_that_were_never_sent(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        stage.parked(acme)
        page = client.get("/portal/deliveries?outcome=parked").content.decode()
        assert "not sent" in page and "Send all parked since" in page

    @pytest.mark.rule("secret.retention")
    @pytest.mark.parametrize("model", [Delivery, Event])
    def test_leaves_out_deliveries_that_were_just_deleted(
        self, client: Client, acme: Merchant, model: type[Delivery] | type[Event]
    ) -> None:
        saved(acme)
        for order_id in ("A-1", "A-2"):
            stage.hold(factories.checkout(acme, merchant_order_id=order_id))
            stage.deliver(acme, 200)
        gone = Event.objects.get(checkout_uuid=Checkout.objects.get(merchant_order_id="A-1").pk)
        model.objects.filter(pk__in=[gone.pk, gone.deliveries.get().pk]).delete()
        page = client.get("/portal/deliveries").content.decode()
        assert re.findall(r"<bdi>(A-\d)</bdi>", page) == ["A-2"]

    def test_without_an_endpoint_asks_for_one_and_then_offers_a_test_event(
        self, client: Client, acme: Merchant
    ) -> None:
        assert b"Add your endpoint" in client.get("/portal/deliveries").content
        viewer = stage.browser(stage.person(acme, Role.VIEWER))
        shown = viewer.get("/portal/deliveries").content
        assert b"Owners, admins and developers can add one." in shown and b"Add your endpoint" not in shown
        saved(acme)
        page = client.get("/portal/deliveries")
        assert b"Send test event" in page.content and b"Add your endpoint" not in page.content
        assert b"Send test event" not in viewer.get("/portal/deliveries").content


@pytest.mark.parametrize(("number", "note"), [(1, ""), (2, "not tried again: the hold ended")])
def test_a_failed_attempt_after_the_end_of_its_hold_is_shown_as_failed(number: int, note: str) -> None:
    over = Delivery(status=Delivery.Status.SUPERSEDED, attempt_count=2)
    badge = badges.of_attempt(over, Attempt(number=number, is_delivered=False))
    assert (badge.words, badge.note) == ("Failed", note)


@pytest.mark.rule("privacy.erase")
def test_an_attempt_about_an_erased_person_says_so() -> None:
    over = Delivery(status=Delivery.Status.SUPERSEDED, event_type="marketing.opted_in", attempt_count=1)
    badge = badges.of_attempt(over, Attempt(number=1, is_delivered=False))
    assert badge.note == "not tried again: its data is deleted"
