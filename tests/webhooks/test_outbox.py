"""The outbox builds each event's envelope, filters events for a subscription, and supersedes outdated events."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction

from checkout import cancellations, captures, expiry
from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE, make_late
from tests.waiting import wait_for, waiting_for_locks
from tests.webhooks.story import (
    ALL,
    CHECKOUT,
    NEW_URL,
    OLD_URL,
    claim_one,
    claimed_events,
    emit_event,
    let_it_be_due,
    record,
    register,
)
from webhooks import delivery, outbox
from webhooks.models import Attempt, Delivery, Event, EventType

pytestmark = pytest.mark.django_db
HAPPENED_AT = datetime(2026, 6, 1, 18, 32, 7, 418_999, tzinfo=UTC)
# For each filter of a subscription, the event types that the service sends.
GOES = {
    ("*",): ALL,
    ("checkout.authorized",): [EventType.AUTHORIZED, EventType.TEST],
    ("checkout.voided",): [EventType.VOIDED, EventType.TEST],
    ("marketing.opted_in",): [EventType.OPTED_IN, EventType.TEST],
    ("checkout.voided", "checkout.authorized"): [EventType.AUTHORIZED, EventType.VOIDED, EventType.TEST],
    ("*", "checkout.voided"): ALL,
}


class TestEnvelope:
    @pytest.mark.rule("event.envelope")
    @pytest.mark.parametrize("event_type", ALL)
    def test_has_five_fields_of_exactly_these_values(self, acme: Merchant, event_type: EventType) -> None:
        payload: dict[str, Any] = {"amount": 9000, "name": "Zoë", "none": None, "list": [True, {}]}
        event = outbox.emit(acme, event_type, payload, at=HAPPENED_AT, checkout_uuid=CHECKOUT)
        assert json.loads(event.plain_body) == {
            "id": str(event.pk),
            "type": event_type.value,
            "api_version": "2026-06",
            "created_at": "2026-06-01T18:32:07.418Z",
            "data": payload,
        }

    def test_ids_are_never_the_same(self, acme: Merchant) -> None:
        assert len({json.loads(emit_event(acme).plain_body)["id"] for _ in range(20)}) == 20


class TestFilter:
    @pytest.mark.rule("event.test", "subscription.filter")
    @pytest.mark.parametrize(("event_types", "goes"), GOES.items(), ids=" ".join)
    def test_passes_its_types_and_always_test_events(
        self, acme: Merchant, event_types: tuple[str, ...], goes: list[EventType]
    ) -> None:
        register(acme, *event_types)
        sent = {event_type: emit_event(acme, event_type).deliveries.count() for event_type in ALL}
        assert sent == {event_type: int(event_type in goes) for event_type in ALL}

    @pytest.mark.parametrize("event_type", ALL)
    def test_without_a_subscription_creates_no_delivery(
        self, acme: Merchant, rival: Merchant, event_type: EventType
    ) -> None:
        register(rival)
        emit_event(acme, event_type)
        assert (Event.objects.get().merchant, Delivery.objects.count()) == (acme, 0)

    @pytest.mark.rule("event.outbox")
    def test_sends_no_event_to_another_merchant(self, acme: Merchant, rival: Merchant) -> None:
        register(acme)
        register(rival, url=NEW_URL)
        emit_event(acme)
        assert claim_one().url == OLD_URL

    def test_that_is_created_later_excludes_earlier_events(self, acme: Merchant) -> None:
        emit_event(acme)
        register(acme)
        later = emit_event(acme)
        assert claimed_events() == {later.pk}

    def test_that_is_widened_excludes_earlier_events(self, acme: Merchant) -> None:
        register(acme, "checkout.authorized")
        emit_event(acme)
        register(acme, "*")
        later = emit_event(acme)
        assert claimed_events() == {later.pk}

    @pytest.mark.rule("subscription.filter")
    def test_that_is_narrowed_keeps_waiting_deliveries(self, acme: Merchant) -> None:
        register(acme, "*")
        waiting = emit_event(acme)
        register(acme, "checkout.authorized")
        assert emit_event(acme).deliveries.count() == 0
        assert claimed_events() == {waiting.pk}

    def test_that_is_narrowed_keeps_the_retries(self, acme: Merchant) -> None:
        register(acme, "*")
        event = emit_event(acme)
        claimed = claim_one()
        register(acme, "checkout.authorized")
        record(claimed, 500, "HTTP 500")
        let_it_be_due()
        assert claimed_events() == {event.pk}


def lapse(checkout: Checkout) -> None:
    make_late(checkout)
    expiry.expire_one_if_due(checkout.pk)


def cancel(checkout: Checkout) -> None:
    cancellations.cancel(checkout.merchant, checkout.pk, cause=CAUSE)


def capture(checkout: Checkout) -> None:
    captures.capture(checkout.merchant, checkout.pk, cause=CAUSE)


@pytest.fixture
def subscribed(acme: Merchant) -> None:
    factories.subscribe(acme, url="http://127.0.0.1:9/hook", event_types=["*"])


@pytest.mark.usefixtures("subscribed")
class TestTheEndOfAHold:
    @pytest.mark.rule("event.superseded")
    @pytest.mark.parametrize("verb", [capture, cancel, lapse])
    def test_supersedes_the_hold_event_and_keeps_the_release_due(
        self, held: Checkout, verb: Callable[[Checkout], None]
    ) -> None:
        verb(held)
        of_hold = Delivery.objects.get(event__type="checkout.authorized")
        assert (of_hold.status, of_hold.next_attempt_at) == ("superseded", None)
        claimed = delivery.claim(slots=9, general_slots=9)
        assert [row.event_type for row in claimed] == ["checkout.voided"] * (verb is not capture)

    def word(self, acme: Merchant, checkout_uuid: UUID = CHECKOUT) -> Delivery:
        now = clock.now()
        until = now + timedelta(seconds=120)
        event = outbox.emit(
            acme, EventType.AUTHORIZED, {}, at=now, checkout_uuid=checkout_uuid, valid_until=until
        )
        return event.deliveries.get()

    def status_after_the_end(self, due: Delivery) -> str:
        outbox.supersede_all({CHECKOUT: clock.now()})
        due.refresh_from_db()
        return due.status

    def test_supersedes_a_delivery_that_waits_for_its_retry(self, acme: Merchant) -> None:
        due = self.word(acme)
        record(claim_one(), 503, "HTTP 503")
        assert self.status_after_the_end(due) == "superseded"

    @pytest.mark.rule("event.superseded")
    @pytest.mark.parametrize(("http_status", "status"), [(200, "delivered"), (503, "superseded")])
    def test_keeps_the_result_of_an_attempt_in_flight(
        self, acme: Merchant, http_status: int, status: str
    ) -> None:
        due, claimed = self.word(acme), claim_one()
        assert self.status_after_the_end(due) == "pending" and str(due.lease_token) == claimed.lease_token
        record(claimed, http_status)
        due.refresh_from_db()
        assert (due.status, due.next_attempt_at) == (status, None)

    @pytest.mark.parametrize(("http_status", "status"), [(200, "delivered"), (404, "parked")])
    def test_does_not_change_ended_deliveries(self, acme: Merchant, http_status: int, status: str) -> None:
        due = self.word(acme)
        record(claim_one(), http_status)
        assert self.status_after_the_end(due) == status

    def test_does_not_affect_another_hold(self, acme: Merchant) -> None:
        assert self.status_after_the_end(self.word(acme, uuid4())) == "pending"

    def test_does_not_affect_other_events_of_the_checkout(self, acme: Merchant) -> None:
        for event_type in (EventType.OPTED_IN, EventType.VOIDED):
            event = outbox.emit(acme, event_type, {}, at=clock.now(), checkout_uuid=CHECKOUT)
            assert self.status_after_the_end(event.deliveries.get()) == "pending"


@pytest.mark.rule("sandbox.advance")
@pytest.mark.django_db(transaction=True)
def test_advancing_time_waits_for_an_attempt_that_ends(acme: Merchant) -> None:
    """Check that `outbox.advance` locks deliveries before attempts.

    A process that ends an attempt locks deliveries first too. If the orders differed, the two could deadlock.
    """
    register(acme)
    checkout_uuid = uuid4()
    outbox.emit(acme, EventType.VOIDED, {}, at=clock.now(), checkout_uuid=checkout_uuid)
    claim_one()

    def pass_by() -> None:
        with transaction.atomic():
            outbox.advance(checkout_uuid, timedelta(minutes=1))
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            list(Delivery.objects.select_for_update())
            passing = pool.submit(pass_by)
            wait_for(lambda: waiting_for_locks() == 1)
            Attempt.objects.update(duration_ms=5)
        passing.result()
    assert Attempt.objects.get().started_at < clock.now() - timedelta(seconds=59)
