"""How changing or ending a subscription affects waiting deliveries."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoCaptureOnCommitCallbacks

from config.lib import clock
from payments.models import Merchant
from tests.conftest import Api
from tests.webhooks.story import (
    ALL,
    NEW_URL,
    OLD_URL,
    claim_one,
    claimed_events,
    emit_event,
    let_it_be_due,
    record,
    register,
)
from webhooks import delivery, outbox, subscriptions
from webhooks.models import (
    Attempt,
    Delivery,
    Endpoint,
    Event,
    EventType,
    SigningSecret,
    Subscription,
)
from webhooks.url_check import CheckedUrl

pytestmark = pytest.mark.django_db


class TestNewUrl:
    @pytest.mark.rule("subscription.new_url")
    def test_gets_waiting_deliveries_with_the_same_secret(self, acme: Merchant) -> None:
        made = register(acme)
        event = emit_event(acme)
        changed = register(acme, url=NEW_URL)
        claimed = claim_one()
        assert (claimed.url, claimed.event_id) == (NEW_URL, str(event.pk))
        assert changed.signing_secret is None
        assert SigningSecret.objects.get().secret == made.signing_secret

    @pytest.mark.rule("event.same_bytes")
    def test_gets_the_next_attempt_with_the_same_bytes(self, acme: Merchant) -> None:
        register(acme)
        emit_event(acme)
        first = claim_one()
        register(acme, url=NEW_URL)
        record(first, 500, "HTTP 500")
        let_it_be_due()
        second = claim_one()
        assert (first.url, second.url) == (OLD_URL, NEW_URL)
        assert (second.event_id, second.body) == (first.event_id, first.body)
        assert second.attempt_number == 2

    def test_keeps_the_result_of_an_attempt_in_flight(self, acme: Merchant) -> None:
        register(acme)
        emit_event(acme)
        claimed = claim_one()
        register(acme, url=NEW_URL)
        record(claimed, 200)
        assert Delivery.objects.get().status == "delivered"

    @pytest.mark.rule("subscription.new_url")
    def test_ends_the_health_of_the_old_one(self, acme: Merchant) -> None:
        register(acme)
        emit_event(acme)
        record(claim_one(), 500, "HTTP 500")
        register(acme, "checkout.voided")
        assert Endpoint.objects.exists()
        register(acme, url=NEW_URL)
        assert not Endpoint.objects.exists()

    @pytest.mark.rule("subscription.new_url")
    @pytest.mark.parametrize("answer", [200, 500])
    def test_does_not_inherit_the_health_of_the_old_one(self, acme: Merchant, answer: int) -> None:
        register(acme)
        emit_event(acme)
        claimed = claim_one()
        register(acme, url=NEW_URL)
        record(claimed, answer, None if answer == 200 else "HTTP 500")
        happened = Endpoint.objects.exclude(last_success_at=None, last_failure_at=None)
        assert not happened.exists()
        emit_event(acme)
        record(claim_one(), 200)
        assert happened.get().failing_since is None


class TestSaving:
    def test_reports_whether_it_has_changed_the_subscription(self, acme: Merchant) -> None:
        assert register(acme).is_changed
        assert not register(acme).is_changed
        assert register(acme, "checkout.voided").is_changed

    def test_subscribers_can_choose_every_event_type_but_the_test(self) -> None:
        assert set(subscriptions.SUBSCRIBABLE) == {"*", *ALL} - {EventType.TEST}

    @pytest.mark.parametrize("is_approved", [True, False])
    def test_wakes_the_senders_only_if_held_deliveries_are_released(
        self,
        acme: Merchant,
        is_approved: bool,
        django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
    ) -> None:
        register(acme)
        Subscription.objects.update(is_approved=is_approved)
        outbox.emit(acme, EventType.OPTED_IN, {"customer": {"email": "a@b.example"}}, at=clock.now())
        with django_capture_on_commit_callbacks() as callbacks:
            subscriptions.approve(acme, OLD_URL)
        assert len(callbacks) == (not is_approved)

    def test_locks_allow_rows_that_refer_to_the_subscription(self, acme: Merchant) -> None:
        register(acme)
        with CaptureQueriesContext(connection) as sent:
            register(acme, url=NEW_URL)
            subscriptions.rotate(acme)
        locking = [query["sql"] for query in sent if " FOR " in query["sql"]]
        assert len(locking) == 3 and all("FOR NO KEY UPDATE" in sql for sql in locking)

    def test_first_delivery_marks_the_subscription(self, acme: Merchant) -> None:
        assert not register(acme).subscription.has_deliveries
        emit_event(acme)
        assert Subscription.objects.get().has_deliveries


class TestMissing:
    @pytest.mark.parametrize(
        "change",
        [
            subscriptions.end,
            subscriptions.rotate,
            subscriptions.revoke_previous,
            lambda merchant: subscriptions.approve(merchant, OLD_URL),
        ],
        ids=["end", "rotate", "revoke", "approve"],
    )
    def test_refusal_does_not_undo_the_callers_changes(
        self, acme: Merchant, change: Callable[[Merchant], object]
    ) -> None:
        with pytest.raises(subscriptions.SubscriptionNotFound):
            change(acme)
        assert Merchant.objects.filter(pk=acme.pk).update(name="New") == 1

    def test_merchant_is_refused_without_undoing_the_callers_changes(self, acme: Merchant) -> None:
        url = CheckedUrl(OLD_URL)
        with pytest.raises(Merchant.DoesNotExist):
            subscriptions.save_subscription(Merchant(), url=url, event_types=["*"], is_approved=True)
        assert Merchant.objects.filter(pk=acme.pk).update(name="New") == 1


class TestEnding:
    """A merchant ends a subscription with `DELETE …/webhooks/subscription`."""

    PATH = "webhooks/subscription"

    @pytest.mark.rule("subscription.end")
    def test_parks_waiting_deliveries_and_retries(self, api: Api) -> None:
        register(api.merchant)
        emit_event(api.merchant, EventType.AUTHORIZED)
        record(claim_one(), 500, "HTTP 500")
        emit_event(api.merchant)
        assert api.delete(self.PATH).status_code == 204
        assert set(Delivery.objects.values_list("status", "next_attempt_at")) == {("parked", None)}
        assert Attempt.objects.count() == 1

    def test_does_not_change_ended_deliveries(self, api: Api) -> None:
        register(api.merchant)
        emit_event(api.merchant)
        record(claim_one(), 200)
        before = Delivery.objects.values().get()
        api.delete(self.PATH)
        assert Delivery.objects.values().get() == before

    @pytest.mark.parametrize(("http_status", "status"), [(204, "delivered"), (500, "parked")])
    def test_keeps_the_result_of_an_attempt_in_flight(self, api: Api, http_status: int, status: str) -> None:
        register(api.merchant)
        emit_event(api.merchant)
        claimed = claim_one()
        api.delete(self.PATH)
        assert str(Delivery.objects.get().lease_token) == claimed.lease_token
        record(claimed, http_status)
        assert Delivery.objects.values_list("status", "next_attempt_at").get() == (status, None)

    def test_creates_no_delivery_for_later_events(self, api: Api) -> None:
        register(api.merchant)
        api.delete(self.PATH)
        for event_type in ALL:
            emit_event(api.merchant, event_type)
        assert (Event.objects.count(), Delivery.objects.count()) == (4, 0)

    def test_does_not_affect_another_merchant(self, api: Api, rival: Merchant) -> None:
        register(api.merchant)
        register(rival)
        theirs = emit_event(rival)
        api.delete(self.PATH)
        assert claimed_events() == {theirs.pk}

    @pytest.mark.rule("subscription.end")
    def test_has_a_successor_that_gets_only_new_events(self, api: Api) -> None:
        old = register(api.merchant).signing_secret
        emit_event(api.merchant)
        api.delete(self.PATH)
        emit_event(api.merchant)
        new = register(api.merchant, url=NEW_URL)
        delivery.end_obsolete_deliveries()
        Delivery.objects.filter(status="pending").update(next_attempt_at=clock.now() - timedelta(hours=1))
        later = emit_event(api.merchant)
        assert claimed_events() == {later.pk}
        assert new.signing_secret not in (None, old)
        assert [row.secret for row in new.subscription.secrets.all()] == [new.signing_secret]
