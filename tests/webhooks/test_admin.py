"""In the admin, operators send deliveries again, and see the health of an endpoint."""

import pytest
from django.test import Client

from config.lib import clock
from portal.models import User
from tests.portal import people
from tests.webhooks.story import claim_one, emit, subscribe
from webhooks import subscriptions
from webhooks.models import Delivery, Endpoint, Event, EventType, Subscription

pytestmark = pytest.mark.django_db

DELIVERIES = "/admin/webhooks/delivery/"
SUBSCRIPTIONS = "/admin/webhooks/subscription/"


@pytest.fixture
def operator() -> User:
    return User.objects.create_superuser("ops@example.com", "a long enough password")


@pytest.fixture
def admin(client: Client, operator: User) -> Client:
    people.operate(client, operator)
    return client


acme = pytest.fixture(subscribe)


def parked(acme: Subscription, event_type: EventType = EventType.VOIDED) -> Delivery:
    due = emit(acme, event_type)
    Delivery.objects.filter(pk=due.pk).update(status="parked", next_attempt_at=None, ended_at=clock.now())
    return due


def post_action(admin: Client, address: str, action: str, *rows: Delivery | Subscription) -> str:
    answer = admin.post(
        address, {"action": action, "_selected_action": [str(row.pk) for row in rows]}, follow=True
    )
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_page_leaves_out_fields_without_a_value(admin: Client, acme: Subscription) -> None:
    event = emit(acme).event
    address = f"/admin/webhooks/event/{event.pk}/change/"
    assert ">Trace</label>" not in admin.get(address).content.decode()
    Event.objects.filter(pk=event.pk).update(traceparent=f"00-{'1' * 32}-{'2' * 16}-01")
    assert ">Trace</label>" in admin.get(address).content.decode()


class TestSendingAgain:
    def test_sends_the_selected_deliveries(self, admin: Client, operator: User, acme: Subscription) -> None:
        due, flying = parked(acme), emit(acme)
        claim_one()
        page = post_action(admin, DELIVERIES, "resend", due, flying)
        assert "Acme: 1 on their way again. 1 cannot be sent again." in page
        due.refresh_from_db()
        assert (due.status, due.resent_by) == ("pending", f"user:{operator.pk}")

    def test_an_ended_hold_needs_its_own_action(self, admin: Client, acme: Subscription) -> None:
        due = parked(acme, EventType.AUTHORIZED)
        due.event.superseded_at = clock.now()
        due.event.save()
        assert "0 on their way again. 1 cannot" in post_action(admin, DELIVERIES, "resend", due)
        assert "1 on their way again" in post_action(admin, DELIVERIES, "resend_although_over", due)

    def test_sends_all_recently_parked_deliveries(self, admin: Client, acme: Subscription) -> None:
        parked(acme)
        parked(acme)
        assert "Acme: 2 on their way again." in post_action(admin, SUBSCRIPTIONS, "resend_parked", acme)

    def test_without_a_subscription_is_reported(self, admin: Client, acme: Subscription) -> None:
        due = parked(acme)
        subscriptions.end(acme.merchant)
        for address, action, row in ((DELIVERIES, "resend", due), (SUBSCRIPTIONS, "resend_parked", acme)):
            assert "Acme has no subscription to send to." in post_action(admin, address, action, row)

    def test_is_refused_to_users_who_can_only_view(
        self, client: Client, operator: User, acme: Subscription
    ) -> None:
        User.objects.filter(pk=operator.pk).update(is_superuser=False)
        people.operate(client, User.objects.get(pk=operator.pk))
        due = parked(acme)
        client.post(DELIVERIES, {"action": "resend", "_selected_action": [str(due.pk)]})
        due.refresh_from_db()
        assert due.status == "parked"


def test_the_health_of_an_endpoint_is_on_its_subscriptions_page(admin: Client, acme: Subscription) -> None:
    Endpoint.objects.create(subscription=acme, failing_since=clock.now())
    parked(acme)
    page = admin.get(f"{SUBSCRIPTIONS}{acme.pk}/change/").content.decode()
    assert "No attempts. 1 parked." in page and "It has failed since" in page
    assert admin.get("/admin/webhooks/endpoint/").status_code == 200
