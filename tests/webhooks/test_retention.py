"""What is deleted in time, and what never is."""

from datetime import timedelta

import pytest
from django.conf import settings

from config.lib import batches, clock
from tests.webhooks.story import aged, claim_one, emit, record, renamed, subscribe
from webhooks import headers, outbox, retention, tasks
from webhooks.models import Attempt, Delivery, Event, EventType, Subscription, plain

pytestmark = pytest.mark.django_db

EMAIL = "lea@example.com"


@pytest.fixture
def acme() -> Subscription:
    return subscribe()


def opt_in(subscription: Subscription) -> Delivery:
    payload = {"customer": {"email": EMAIL}}
    event = outbox.emit(subscription.merchant, EventType.OPTED_IN, payload, at=clock.now())
    return event.deliveries.get()


class TestPersonalBodies:
    @pytest.mark.rule("secret.retention")
    def test_are_encrypted_at_rest_and_sent_plain(self, acme: Subscription) -> None:
        due = opt_in(acme)
        assert EMAIL.encode() not in bytes(due.event.body)
        claimed = claim_one()
        assert EMAIL.encode() not in claimed.body
        body = plain(claimed.event_type, claimed.body)
        assert EMAIL.encode() in body and body == due.event.plain_body
        assert headers.signed(claimed, body)["X-Service-Event-Type"] == "marketing.opted_in"

    def test_other_bodies_are_kept_as_they_are_sent(self, acme: Subscription) -> None:
        due = emit(acme)
        assert bytes(due.event.body) == due.event.plain_body == claim_one().body

    def test_what_the_receiver_said_of_one_is_not_kept(self, acme: Subscription) -> None:
        personal, other = opt_in(acme), emit(acme)
        for due in (personal, other):
            Delivery.objects.exclude(pk=due.pk).update(next_attempt_at=clock.now() + timedelta(hours=1))
            Delivery.objects.filter(pk=due.pk).update(next_attempt_at=clock.now())
            record(claim_one(), 500, "HTTP 500")
        assert personal.attempts.get().response_excerpt == ""
        assert other.attempts.get().response_excerpt == "text"

    @pytest.mark.rule("secret.retention")
    @pytest.mark.parametrize("status", ["delivered", "parked"])
    def test_are_deleted_a_week_after_their_end(self, acme: Subscription, status: str) -> None:
        due = aged(opt_in(acme), 7.01, status=status)
        tasks.delete_personal()
        due.event.refresh_from_db()
        assert (bytes(due.event.body), due.event.plain_body) == (b"", b"")
        assert due.event.body_deleted_at is not None
        assert retention.delete_personal() == 0

    def test_that_nobody_wanted_are_deleted_too(self, acme: Subscription) -> None:
        due = aged(opt_in(acme), 8)
        due.delete()
        assert retention.delete_personal() == 1

    def test_are_kept_until_then(self, acme: Subscription) -> None:
        aged(opt_in(acme), 6.9)
        aged(opt_in(acme), 8, status="pending")
        ended_late = aged(opt_in(acme), 8)
        Delivery.objects.filter(pk=ended_late.pk).update(ended_at=clock.now())
        aged(emit(acme), 8)
        assert retention.delete_personal() == 0


class TestOldEvents:
    def old(self, acme: Subscription, days: float, *, status: str = "delivered") -> Delivery:
        due = emit(acme)
        record(claim_one(), 500, "HTTP 500")
        aged(due, days, status=status)
        renamed(due.event_id, clock.now() - timedelta(days=days))
        return due

    @pytest.mark.rule("secret.retention")
    def test_go_with_their_deliveries_and_attempts_after_thirty_days(self, acme: Subscription) -> None:
        assert timedelta(days=30) == settings.WEBHOOK_RETENTION
        self.old(acme, 30.1)
        young = self.old(acme, 29)
        tasks.delete_old_events()
        assert set(Delivery.objects.values_list("pk", flat=True)) == {young.pk}
        assert Event.objects.count() == Attempt.objects.count() == 1

    @pytest.mark.rule("secret.retention")
    def test_that_have_not_ended_are_never_deleted(self, acme: Subscription) -> None:
        self.old(acme, 400, status="pending")
        assert retention.delete_old() == 0
        assert Event.objects.count() == Attempt.objects.count() == 1

    def test_that_ended_lately_are_kept(self, acme: Subscription) -> None:
        due = self.old(acme, 31)
        Delivery.objects.filter(pk=due.pk).update(ended_at=clock.now() - timedelta(days=1))
        assert retention.delete_old() == 0

    def test_go_in_small_batches(self, acme: Subscription, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retention, "ROWS", 2)
        for _ in range(5):
            self.old(acme, 31)
        monkeypatch.setattr(batches, "BATCHES", 2)
        assert retention.delete_old() == 4, "the next run goes on"
        assert retention.delete_old() == 1
