"""A person can send deliveries again."""

import time
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from config.lib import clock
from payments.cause import Cause
from payments.models import Merchant
from tests.webhooks.story import claim_one, emit, record, renamed, subscribe
from webhooks import delivery, resending, retries, subscriptions
from webhooks.models import Attempt, Delivery, Endpoint, Event, EventType, Subscription

pytestmark = pytest.mark.django_db

DORA = Cause("user:dora")


acme = pytest.fixture(subscribe)


def parked(subscription: Subscription, event_type: EventType = EventType.VOIDED) -> Delivery:
    due = emit(subscription, event_type, valid_for=100 if event_type == EventType.AUTHORIZED else None)
    Delivery.objects.filter(pk=due.pk).update(
        status="parked", next_attempt_at=None, ended_at=clock.now(), attempt_count=9
    )
    due.refresh_from_db()
    return due


def state_of(due: Delivery) -> tuple[object, ...]:
    due.refresh_from_db()
    return (due.status, due.next_attempt_at, due.attempt_count, due.resent_by, due.ended_at)


class TestResend:
    @pytest.mark.rule("resend.same_event")
    def test_sends_a_parked_delivery_with_the_same_event_and_the_next_number(
        self, acme: Subscription
    ) -> None:
        due = parked(acme)
        resending.resend(acme.merchant, due.pk, cause=DORA)
        claimed = claim_one()
        assert (claimed.event_id, claimed.body) == (str(due.event_id), bytes(due.event.body))
        assert (claimed.attempt_number, due.attempts.get().actor) == (10, "user:dora")
        record(claimed, 200)
        assert state_of(due)[0] == "delivered"

    @pytest.mark.rule("resend.nothing_scheduled")
    def test_that_fails_schedules_nothing(self, acme: Subscription) -> None:
        due = parked(acme)
        for _ in range(2):
            resending.resend(acme.merchant, due.pk, cause=DORA)
            record(claim_one(), 500, "HTTP 500")
            assert state_of(due)[:2] == ("parked", None)

    def test_of_a_waiting_delivery_restores_its_planned_time_afterwards(self, acme: Subscription) -> None:
        due = emit(acme)
        record(claim_one(), 500, "HTTP 500")
        due.refresh_from_db()
        planned = due.next_attempt_at
        resending.resend(acme.merchant, due.pk, cause=DORA)
        record(claim_one(), 500, "HTTP 500")
        assert state_of(due)[:2] == ("pending", planned)
        Delivery.objects.update(next_attempt_at=clock.now())
        record(claim_one(), 500, "HTTP 500")
        due.refresh_from_db()
        ended_at = due.attempts.get(number=3).ended_at
        assert ended_at is not None
        five_minutes = timedelta(seconds=300 * retries.jitter_factor(due.pk, 2))
        assert due.next_attempt_at == ended_at + five_minutes, "the resent one is not counted"

    def test_whose_worker_is_lost_restores_the_delivery(self, acme: Subscription) -> None:
        due = parked(acme)
        resending.resend(acme.merchant, due.pk, cause=DORA)
        claim_one()
        Delivery.objects.update(lease_until=clock.now() - timedelta(seconds=1))
        delivery.close_lost_attempts()
        assert state_of(due)[0] == "parked"
        resending.resend(acme.merchant, due.pk, cause=DORA)

    def test_respects_the_pace_of_the_endpoint(self, acme: Subscription) -> None:
        due, over = parked(acme), parked(acme, EventType.AUTHORIZED)
        over.event.superseded_at = clock.now()
        over.event.save()
        Endpoint.objects.create(subscription=acme, paced_until=clock.now() + timedelta(hours=1))
        for row in (due, over):
            resending.resend(acme.merchant, row.pk, cause=DORA, although_over=True)
        assert delivery.claim(slots=2, general_slots=2) == []

    def test_keeps_a_hold_urgent(self, acme: Subscription) -> None:
        due = parked(acme, EventType.AUTHORIZED)
        Endpoint.objects.create(subscription=acme, paced_until=clock.now() + timedelta(hours=1))
        resending.resend(acme.merchant, due.pk, cause=DORA)
        assert claim_one().delivery_id == str(due.pk)

    def test_a_hold_that_waits_for_its_own_retry_again_is_urgent(self, acme: Subscription) -> None:
        due = emit(acme, EventType.AUTHORIZED, valid_for=100)
        record(claim_one(), 500, "HTTP 500")
        resending.resend(acme.merchant, due.pk, cause=DORA)
        record(claim_one(), 500, "HTTP 500")
        due.refresh_from_db()
        assert (due.status, due.is_urgent) == ("pending", True)

    def test_uses_the_current_subscription(self, acme: Subscription) -> None:
        due = parked(acme)
        subscriptions.end(acme.merchant)
        new = Subscription.objects.create(
            merchant=acme.merchant, url="https://new.example.com/", event_types=["checkout.authorized"]
        )
        resending.resend(acme.merchant, due.pk, cause=DORA)
        assert claim_one().url == new.url

    def test_requires_a_subscription(self, acme: Subscription) -> None:
        due = parked(acme)
        subscriptions.end(acme.merchant)
        before = state_of(due)
        with pytest.raises(subscriptions.SubscriptionNotFound):
            resending.resend(acme.merchant, due.pk, cause=DORA)
        assert state_of(due) == before


class TestAHold:
    """During its hold, `checkout.authorized` can be sent again without confirmation.

    After the hold has ended, the person must confirm.
    """

    def test_never_starts_after_its_window(self, acme: Subscription) -> None:
        due = parked(acme, EventType.AUTHORIZED)
        resending.resend(acme.merchant, due.pk, cause=DORA)
        Delivery.objects.update(valid_until=clock.now())
        assert delivery.claim(slots=5, general_slots=5) == []
        assert delivery.end_obsolete_deliveries() == 1

    def test_keeps_its_own_attempts_behind_a_backlog_of_others(self, acme: Subscription) -> None:
        due = emit(acme, EventType.AUTHORIZED, valid_for=100)
        record(claim_one(), 503, "HTTP 503")
        Endpoint.objects.update_or_create(
            subscription=acme, defaults={"paced_until": clock.now() + timedelta(hours=1)}
        )
        resending.resend(acme.merchant, due.pk, cause=DORA)
        assert claim_one().delivery_id == str(due.pk)

    def test_leaves_three_seconds_before_its_own_next_attempt(self, acme: Subscription) -> None:
        due = emit(acme, EventType.AUTHORIZED, valid_for=100)
        record(claim_one(), 503, "HTTP 503")
        resending.resend(acme.merchant, due.pk, cause=DORA)
        claimed = claim_one()
        Delivery.objects.update(returns_at=clock.now() - timedelta(seconds=5))
        record(claimed, None, "timeout after 15 s", 15_000)
        due.refresh_from_db()
        ended_at = due.attempts.get(number=2).ended_at
        assert ended_at is not None and due.next_attempt_at == ended_at + timedelta(seconds=3)


class TestRefusals:
    def refuse(self, due: Delivery, kind: type[Exception], merchant: Merchant | None = None) -> None:
        before = state_of(due)
        with pytest.raises(kind):
            resending.resend(merchant or due.merchant, due.pk, cause=DORA)
        assert state_of(due) == before
        assert not Attempt.objects.filter(actor="user:dora").exists()

    def test_a_delivery_of_another_merchant(self, acme: Subscription) -> None:
        rival = subscribe("Rival")
        self.refuse(parked(acme), resending.DeliveryNotFound, rival.merchant)

    def test_one_that_does_not_exist(self, acme: Subscription) -> None:
        with pytest.raises(resending.DeliveryNotFound):
            resending.resend(acme.merchant, uuid4(), cause=DORA)

    def test_one_that_was_delivered(self, acme: Subscription) -> None:
        due = emit(acme)
        record(claim_one(), 200)
        self.refuse(due, resending.AlreadyDelivered)

    def test_one_in_flight(self, acme: Subscription) -> None:
        due = emit(acme)
        claim_one()
        self.refuse(due, resending.UnderWay)

    def test_a_second_click(self, acme: Subscription) -> None:
        due = parked(acme)
        resending.resend(acme.merchant, due.pk, cause=DORA)
        self.refuse(due, resending.UnderWay)

    def test_one_whose_personal_data_is_gone(self, acme: Subscription) -> None:
        due = parked(acme, EventType.OPTED_IN)
        due.event.body_deleted_at = clock.now()
        due.event.save()
        self.refuse(due, resending.BodyDeleted)

    @pytest.mark.rule("resend.age")
    def test_one_that_will_be_deleted_soon(self, acme: Subscription) -> None:
        due, young = parked(acme), parked(acme)
        old, young = (
            Delivery.objects.get(event=renamed(due.event_id, clock.now() - timedelta(days=days)))
            for due, days in ((due, 26.01), (young, 25.99))
        )
        self.refuse(old, resending.TooOld)
        since = clock.now() - timedelta(hours=1)
        assert resending.resend_parked(acme.merchant, since, cause=DORA) == (1, 1)
        assert (state_of(old)[0], state_of(young)[0]) == ("parked", "pending")

    @pytest.mark.rule("resend.confirmed")
    @pytest.mark.parametrize("change", ["superseded_at", "valid_until"])
    def test_a_hold_that_is_over_wants_confirmation(self, acme: Subscription, change: str) -> None:
        due = parked(acme, EventType.AUTHORIZED)
        setattr(due.event, change, clock.now())
        due.event.save()
        self.refuse(due, resending.HoldIsOver)
        resending.resend(acme.merchant, due.pk, cause=DORA, although_over=True)
        assert delivery.end_obsolete_deliveries() == 0, "it is wanted"
        record(claim_one(), 500, "HTTP 500")
        assert state_of(due)[0] == ("superseded" if change == "superseded_at" else "parked")

    def test_a_hold_that_ends_during_the_request_is_not_sent(
        self, acme: Subscription, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        due = parked(acme, EventType.AUTHORIZED)
        lock_holds = resending._lock_holds

        def lock_late(events: Any) -> Any:
            Event.objects.update(valid_until=clock.now())
            return lock_holds(events)

        monkeypatch.setattr(resending, "_lock_holds", lock_late)
        with pytest.raises(resending.HoldIsOver), transaction.atomic():
            resending.resend(acme.merchant, due.pk, cause=DORA)
        Event.objects.update(valid_until=clock.now() + timedelta(seconds=100))
        assert resending.resend_selected(acme.merchant, [due.pk], cause=DORA) == (0, 1)
        assert state_of(due)[0] == "parked"

    @pytest.mark.rule("resend.confirmed")
    def test_a_hold_that_ends_before_it_is_claimed_is_not_sent(self, acme: Subscription) -> None:
        due = parked(acme, EventType.AUTHORIZED)
        Event.objects.update(valid_until=clock.now() + timedelta(seconds=0.5))
        assert resending.resend_selected(acme.merchant, [due.pk], cause=DORA) == (1, 0)
        time.sleep(0.5)
        assert delivery.claim(slots=5, general_slots=5) == []
        assert delivery.end_obsolete_deliveries() == 1


class TestMany:
    @pytest.fixture
    def five(self, acme: Subscription) -> list[Delivery]:
        """Return five deliveries: two parked, one in flight, one delivered, and one for a hold that is over."""
        flying, done = emit(acme), emit(acme)
        delivery.claim(slots=2, general_slots=2)
        record_of(done, 200)
        over = parked(acme, EventType.AUTHORIZED)
        over.event.superseded_at = clock.now()
        over.event.save()
        return [parked(acme), parked(acme), flying, done, over]

    @pytest.mark.rule("resend.same_event")
    def test_of_a_selection_sends_the_possible_ones(self, acme: Subscription, five: list[Delivery]) -> None:
        rivals = parked(subscribe("Rival"))
        chosen = [due.pk for due in [*five, rivals]]
        assert resending.resend_selected(acme.merchant, chosen, cause=DORA) == (2, 3)
        assert {UUID(claimed.delivery_id) for claimed in delivery.claim(slots=9, general_slots=9)} == {
            five[0].pk,
            five[1].pk,
        }

    def test_of_a_selection_sends_ended_holds_if_confirmed(
        self, acme: Subscription, five: list[Delivery]
    ) -> None:
        chosen = [due.pk for due in five]
        sent = resending.resend_selected(acme.merchant, chosen, cause=DORA, although_over=True)
        assert sent == (3, 2)

    def test_leaves_out_deliveries_with_a_deleted_body(self, acme: Subscription) -> None:
        emptied = parked(acme, EventType.OPTED_IN)
        emptied.event.body_deleted_at = clock.now()
        emptied.event.save()
        since = clock.now() - timedelta(hours=1)
        assert resending.resend_selected(acme.merchant, [emptied.pk], cause=DORA) == (0, 1)
        assert resending.resend_parked(acme.merchant, since, cause=DORA) == (0, 1)
        assert state_of(emptied)[0] == "parked"

    def test_parked_since_a_time_leaves_older_ones(self, acme: Subscription) -> None:
        old, new = parked(acme), parked(acme)
        Delivery.objects.filter(pk=old.pk).update(ended_at=clock.now() - timedelta(hours=2))
        emit(acme)
        since = clock.now() - timedelta(hours=1)
        assert resending.resend_parked(acme.merchant, since, cause=DORA) == (1, 0)
        assert state_of(new)[0] == "pending" and state_of(old)[0] == "parked"

    def test_skips_deliveries_that_cannot_be_sent(
        self, acme: Subscription, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(resending, "MAX_RESENT", 2)
        for _ in range(2):
            over = parked(acme, EventType.AUTHORIZED)
            over.event.superseded_at = clock.now()
            over.event.save()
        wanted = parked(acme)
        since = clock.now() - timedelta(hours=1)
        assert resending.resend_parked(acme.merchant, since, cause=DORA) == (1, 2)
        assert state_of(wanted)[0] == "pending"

    def test_takes_a_maximum_number_at_a_time(
        self, acme: Subscription, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(resending, "MAX_RESENT", 2)
        for _ in range(3):
            parked(acme)
        since = clock.now() - timedelta(hours=1)
        assert resending.resend_parked(acme.merchant, since, cause=DORA) == (2, 0)
        assert resending.resend_parked(acme.merchant, since, cause=DORA) == (1, 0)

    def test_costs_the_same_statements_for_any_number(
        self, acme: Subscription, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        for _ in range(30):
            parked(acme)
        with django_assert_max_num_queries(12):
            resending.resend_parked(acme.merchant, clock.now() - timedelta(hours=1), cause=DORA)


def record_of(due: Delivery, http_status: int) -> None:
    due.refresh_from_db()
    assert due.lease_token is not None
    delivery.record_results([delivery.Result(str(due.pk), str(due.lease_token), http_status, None, 5)])
