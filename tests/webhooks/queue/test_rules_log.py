"""The queue retries each event type on its schedule, and writes each attempt to the delivery log."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from config.lib import clock
from payments.models import Merchant
from tests import factories
from tests.conftest import Api
from tests.webhooks.story import claim_one, record
from webhooks import delivery, outbox
from webhooks.models import Attempt, Delivery, EventType

pytestmark = pytest.mark.django_db

LOG = "webhooks/deliveries"
CHECKOUT = UUID("01890000-0000-7000-8000-000000000001")
MINUTE, HOUR = 60, 3600
THREE_DAYS = (MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 6 * HOUR, 12 * HOUR, 20 * HOUR, 31 * HOUR)
# For `checkout.authorized`, the seconds from the event to each retry. For other types, the seconds from the
# end of each attempt to the start of the next.
SCHEDULES = {
    EventType.AUTHORIZED: (5, 25, 75),
    EventType.VOIDED: THREE_DAYS,
    EventType.OPTED_IN: THREE_DAYS,
    EventType.TEST: (),
}


def emit_event(merchant: Merchant, event_type: EventType) -> Delivery:
    """Emit an event about a checkout, with the current time. Return its delivery."""
    event = outbox.emit(merchant, event_type, {}, at=clock.now(), checkout_uuid=CHECKOUT)
    return event.deliveries.get()


@pytest.fixture
def acme_subscribed(acme: Merchant) -> Merchant:
    factories.subscribe(acme, url="http://127.0.0.1:9/hook", event_types=["*"])
    return acme


@pytest.mark.rule("delivery.hold", "delivery.three_days", "event.test")
class TestSchedule:
    @pytest.mark.parametrize(("event_type", "retries"), SCHEDULES.items())
    def test_of_an_endpoint_that_is_down(
        self, acme_subscribed: Merchant, event_type: EventType, retries: tuple[int, ...]
    ) -> None:
        """Check that each retry is due within 10 % of its scheduled time.

        After the last retry, the delivery is parked.
        """
        due = emit_event(acme_subscribed, event_type)
        assert due.next_attempt_at == due.event.created_at, "the first at once"
        for number, seconds in enumerate(retries, start=1):
            record(claim_one(), None, "could not connect", 0)
            ended_at = due.attempts.get(number=number).ended_at
            origin = due.event.created_at if event_type == EventType.AUTHORIZED else ended_at
            due.refresh_from_db()
            assert due.next_attempt_at is not None and origin is not None
            gap = (due.next_attempt_at - origin).total_seconds()
            assert 0.9 * seconds <= gap <= 1.1 * seconds
            Delivery.objects.update(next_attempt_at=clock.now())
        record(claim_one(), None, "could not connect", 0)
        due.refresh_from_db()
        assert (due.status, due.attempt_count) == ("parked", len(retries) + 1)


class TestEntry:
    def log(self, api: Api, query: str = "") -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = api.get(f"{LOG}{query}").json()["data"]["deliveries"]
        return entries

    @pytest.fixture(autouse=True)
    def _subscribed(self, acme_subscribed: Merchant) -> None:
        pass

    @pytest.mark.rule("log.entries", "log.words")
    def test_shows_each_attempt_with_its_result(self, api: Api) -> None:
        due = emit_event(api.merchant, EventType.VOIDED)
        record(claim_one(), 500, "HTTP 500", 37)
        due.refresh_from_db()
        planned = due.next_attempt_at
        (entry,) = self.log(api)
        assert entry == {
            "event_id": str(due.event_id),
            "event_type": "checkout.voided",
            "attempt_number": 1,
            "http_status": 500,
            "error_message": "HTTP 500",
            "duration_ms": 37,
            "attempted_at": clock.iso(due.attempts.get().started_at),
            "status": "failed",
            "next_attempt_at": clock.iso(planned),
            "checkout_uuid": str(CHECKOUT),
        }
        Delivery.objects.update(next_attempt_at=clock.now())
        record(claim_one(), 204, None, 5)
        newest, oldest = self.log(api)
        assert oldest == entry | {"next_attempt_at": None}
        assert newest == entry | {
            "attempt_number": 2,
            "http_status": 204,
            "error_message": None,
            "duration_ms": 5,
            "attempted_at": clock.iso(due.attempts.get(number=2).started_at),
            "status": "delivered",
            "next_attempt_at": None,
        }

    @pytest.mark.rule("log.words")
    def test_shows_the_next_attempt_only_at_the_newest_one(self, api: Api) -> None:
        due = emit_event(api.merchant, EventType.VOIDED)
        for _ in range(2):
            Delivery.objects.update(next_attempt_at=clock.now())
            record(claim_one(), 500, "HTTP 500")
        due.refresh_from_db()
        shown = [(entry["attempt_number"], entry["next_attempt_at"]) for entry in self.log(api)]
        assert shown == [(2, clock.iso(due.next_attempt_at)), (1, None)]

    def test_of_a_test_event_names_no_checkout(self, api: Api) -> None:
        outbox.emit(api.merchant, EventType.TEST, {}, at=clock.now())
        record(claim_one(), 200)
        assert self.log(api)[0]["checkout_uuid"] is None

    def test_of_what_was_parked_or_superseded_has_no_next_attempt(self, api: Api) -> None:
        emit_event(api.merchant, EventType.AUTHORIZED)
        record(claim_one(), 404, "HTTP 404")
        emit_event(api.merchant, EventType.AUTHORIZED)
        record(claim_one(), 500, "HTTP 500")
        assert [bool(entry["next_attempt_at"]) for entry in self.log(api)] == [True, False]
        outbox.supersede_all({CHECKOUT: clock.now()})
        assert [bool(entry["next_attempt_at"]) for entry in self.log(api)] == [False, False]

    def test_comes_only_when_the_attempt_has_ended(self, api: Api) -> None:
        emit_event(api.merchant, EventType.VOIDED)
        claimed = claim_one()
        assert Attempt.objects.count() == 1 and self.log(api) == []
        record(claimed, 200)
        assert len(self.log(api)) == 1

    def test_of_an_attempt_whose_worker_was_lost_is_one_too(self, api: Api) -> None:
        emit_event(api.merchant, EventType.VOIDED)
        claim_one()
        Delivery.objects.update(lease_until=clock.now() - timedelta(seconds=1))
        delivery.close_lost_attempts()
        (entry,) = self.log(api, "?status=failed")
        assert (entry["attempt_number"], entry["http_status"], entry["duration_ms"]) == (1, None, None)
        assert entry["error_message"] and entry["next_attempt_at"]

    def test_of_another_merchants_event_is_not_found_by_its_id(self, rival_api: Api, api: Api) -> None:
        due = emit_event(api.merchant, EventType.VOIDED)
        record(claim_one(), 200)
        query = f"?event_id={due.event_id}"
        assert (len(self.log(api, query)), self.log(rival_api, query)) == (1, [])
        assert self.log(api, f"?event_id={uuid4()}") == []
