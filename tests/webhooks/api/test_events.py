"""The feed of events has the right entries in the right order, and its cursor never skips an event."""

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from oauth2_provider.models import AccessToken
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from checkout import cancellations, captures
from checkout.models import Checkout
from config.lib import clock, cursor
from config.lib.database import partitions
from payments.models import Merchant
from tests import factories
from tests.conftest import Api
from tests.factories import CAUSE
from tests.journeys import polling
from tests.refusals import refused
from tests.webhooks.story import claim_one, emit_event, record, register
from webhooks import outbox
from webhooks.models import EVENTS, Delivery, Event, EventType

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)


def age(duration: timedelta = 5 * SECOND) -> None:
    """Set the `written_at` of all events back by this duration."""
    Event.objects.update(written_at=F("written_at") - duration)


def page(api: Api, query: str = "") -> dict[str, Any]:
    answer = api.get(f"events?{query}" if query else "events")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()["data"]
    assert found.keys() == {"events", "next_cursor"} and found["next_cursor"]
    return found


def ids(body: dict[str, Any]) -> list[UUID]:
    return [UUID(listed["event"]["id"]) for listed in body["events"]]


def statuses(body: dict[str, Any]) -> list[str]:
    return [listed["delivery_status"] for listed in body["events"]]


def page_after(api: Api, previous: dict[str, Any], query: str = "") -> dict[str, Any]:
    return page(api, f"cursor={previous['next_cursor']}&{query}".rstrip("&"))


def dated(event: Event, **facts: Any) -> Event:
    """Set fields of an event, for example its times. Return the event."""
    Event.objects.filter(pk=event.pk).update(**facts)
    return event


@pytest.mark.django_db
@pytest.mark.rule("events.feed")
class TestTheFeed:
    def test_has_the_sent_envelope_even_without_a_subscription(
        self, api: Api, held: Checkout, rival: Merchant
    ) -> None:
        emit_event(rival)
        captures.capture(held.merchant, held.pk, cause=CAUSE)
        age()
        event = Event.objects.get(merchant=api.merchant)
        assert page(api)["events"] == [{"event": json.loads(event.plain_body), "delivery_status": "none"}]
        assert event.plain_body in api.get("events").content, "byte for byte"

    def test_shows_the_status_of_each_delivery(self, api: Api) -> None:
        register(api.merchant, "checkout.voided", "marketing.opted_in")
        wanted, unwanted = emit_event(api.merchant), emit_event(api.merchant, EventType.AUTHORIZED)
        age()
        assert ids(page(api)) == [wanted.pk, unwanted.pk] and statuses(page(api)) == ["pending", "none"]
        record(claim_one(), 200)
        assert statuses(page(api)) == ["delivered", "none"]
        for status in ("parked", "superseded"):
            Delivery.objects.update(status=status)
            assert statuses(page(api)) == [status, "none"]

    def test_shows_a_captured_holds_delivery_as_superseded(
        self, api: Api, at: Callable[[str], Checkout]
    ) -> None:
        register(api.merchant)
        at("captured")
        age()
        assert statuses(page(api)) == ["superseded"]

    def test_excludes_test_events(self, api: Api) -> None:
        emit_event(api.merchant, EventType.TEST)
        voided = emit_event(api.merchant)
        age()
        assert ids(page(api)) == [voided.pk]
        for wrong in ("webhook.test", "checkout.captured", "*", ""):
            refused(api.get(f"events?type={wrong}"), 422, "validation_failed", "type")

    def test_takes_filters(self, api: Api, rival: Merchant) -> None:
        one, other = factories.checkout(api.merchant), factories.checkout(rival)
        told = [
            outbox.emit(merchant, kind, {}, at=clock.now(), checkout_uuid=about)
            for merchant, about in ((api.merchant, one.pk), (rival, other.pk))
            for kind in (EventType.AUTHORIZED, EventType.VOIDED)
        ]
        age()
        assert ids(page(api, f"checkout_uuid={one.pk}")) == [event.pk for event in told[:2]]
        assert ids(page(api, f"checkout_uuid={other.pk}")) == [], "another merchant's"
        assert ids(page(api, f"checkout_uuid={uuid4()}")) == []
        for number, kind in enumerate(("checkout.authorized", "checkout.voided")):
            assert ids(page(api, f"type={kind}")) == [told[number].pk]
        assert ids(page(api, "type=marketing.opted_in")) == []

    @pytest.mark.parametrize(
        ("param", "value"),
        [
            *(("limit", value) for value in ("0", "-1", "201", "abc", "1&limit=2")),
            *(("checkout_uuid", value) for value in ("abc", "", "%00", "1' OR '1'='1")),
            *(("created_after", value) for value in ("yesterday", "2026-06-01", "", "0001-01-01T00:00:00Z")),
            ("status", "delivered"),
        ],
    )
    def test_refuses_an_invalid_query(self, api: Api, param: str, value: str) -> None:
        refused(api.get(f"events?{param}={value}"), 422, "validation_failed", param)

    def test_needs_its_scope(self, api: Api) -> None:
        api.token = api.get_token(scope="checkouts:read checkouts:write")
        refused(api.get("events"), 403, "insufficient_scope")

    @pytest.mark.rule("api.statements")
    def test_costs_the_same_for_any_number_of_events(self, api: Api) -> None:
        register(api.merchant)
        api.get("events")
        counts = []
        for _ in range(2):
            for _ in range(20):
                emit_event(api.merchant)
            age()
            with CaptureQueriesContext(connection) as asked:
                found = page(api)
            counts.append((len(found["events"]), len(asked)))
        assert counts == [(20, 4), (40, 4)], "token, horizon, events, deliveries"


@pytest.mark.django_db
@pytest.mark.rule("events.order")
class TestTheOrder:
    def test_is_the_order_of_writing_regardless_of_dates_and_ids(self, api: Api) -> None:
        now = clock.now()
        made = [
            Event.objects.create(
                id=UUID(int=clock.first_id(now - number * SECOND).int | uuid4().int & (1 << 62) - 1),
                merchant=api.merchant,
                type=EventType.VOIDED,
                body=b'{"id": "%s"}',
                created_at=now - (number * 7 % 3) * HOUR,
            )
            for number in range(4)
        ]
        for event in made:
            dated(event, body=json.dumps({"id": str(event.pk)}).encode())
        age()
        assert ids(page(api)) == [event.pk for event in made]

    def test_pages_neither_repeat_nor_miss_what_was_written_at_one_moment(self, api: Api) -> None:
        """Check the pages of events that have the same `written_at`.

        Events that are older than the column `written_at` all have the same value.
        """
        made = [emit_event(api.merchant).pk for _ in range(7)]
        Event.objects.update(written_at=clock.now() - 5 * SECOND)
        found = page(api, "limit=2")
        seen = ids(found)
        for _ in range(4):
            found = page_after(api, found, "limit=2")
            seen += ids(found)
        assert seen == sorted(made)
        later = [emit_event(api.merchant).pk]
        polling.until(lambda: ids(page_after(api, found, "limit=2")) == later, within=3, what="it is listed")

    def test_continues_among_old_rows_of_one_moment(self, api: Api) -> None:
        made = [self.written_before(api, days) for days in (9, 6, 3)]
        Event.objects.update(written_at=clock.now() - HOUR)
        since = clock.iso(clock.now() - 10 * DAY)
        found = page(api, f"created_after={since}&limit=1")
        seen = ids(found)
        for _ in range(2):
            found = page_after(api, found, "limit=1")
            seen += ids(found)
        assert seen == made

    def written_before(self, api: Api, days: int) -> UUID:
        at = clock.now() - days * DAY
        made = UUID(int=clock.first_id(at).int | uuid4().int & (1 << 62) - 1)
        body = json.dumps({"id": str(made)}).encode()
        Event.objects.create(id=made, merchant=api.merchant, type="checkout.voided", body=body, created_at=at)
        return made

    def test_continues_from_an_empty_page(self, api: Api) -> None:
        found = page(api)
        assert ids(found) == []
        made = [emit_event(api.merchant).pk]
        found = page_after(api, found)
        assert ids(found) == [], "it is listed once nobody can write before it any more"
        polling.until(lambda: ids(page_after(api, found)) == made, within=3, what="it is listed")


@pytest.mark.django_db
@pytest.mark.rule("events.from")
class TestTheBeginning:
    def test_is_a_day_ago_by_default(self, api: Api) -> None:
        made = [emit_event(api.merchant) for _ in range(3)]
        for event, ago in zip(made, (25 * HOUR, 23 * HOUR, 0 * HOUR), strict=True):
            at = clock.now() - ago - 5 * SECOND
            dated(event, created_at=at, written_at=at)
        assert ids(page(api)) == [event.pk for event in made[1:]]
        early, late = (clock.iso(clock.now() - ago) for ago in (26 * HOUR, HOUR))
        assert ids(page(api, f"created_after={early}")) == [event.pk for event in made]
        assert ids(page(api, f"created_after={late}")) == [made[2].pk]

    def test_is_thirty_days_ago_at_most(self, api: Api) -> None:
        furthest, beyond = (clock.iso(clock.now() - 30 * DAY - more) for more in (-SECOND, 2 * SECOND))
        page(api, f"created_after={furthest}")
        refused(api.get(f"events?created_after={beyond}"), 422, "validation_failed", "created_after")

    def test_is_never_in_the_future(self, api: Api) -> None:
        near, beyond = (clock.iso(clock.now() + timedelta(seconds=ahead)) for ahead in (50, 70))
        assert ids(page(api, f"created_after={near}")) == []
        for start in (beyond, "9999-12-31T23:59:59Z"):
            refused(api.get(f"events?created_after={start}"), 422, "validation_failed", "created_after")

    def test_leaves_out_no_event_that_is_written_later(self, api: Api) -> None:
        """Check that the cursor also returns an event that is written long after it happened.

        In this test, the hold lapsed two days ago, but its event is written only after the first call.
        """
        found = page(api)
        noticed = dated(emit_event(api.merchant), created_at=clock.now() - 2 * DAY)
        dated(noticed, written_at=clock.now() - 0.9 * SECOND)
        polling.until(lambda: ids(page_after(api, found)) == [noticed.pk], within=3, what="it is listed")
        assert ids(page(api)) == [], "who begins by now, begins with what has happened in a day"

    @pytest.mark.rule("list.cursor")
    def test_cursor_is_valid_only_for_its_merchant_and_filters(self, api: Api, rival_api: Api) -> None:
        since, about = clock.iso(clock.now() - HOUR), uuid4()
        filters = f"type=checkout.voided&checkout_uuid={about}&created_after={since}"
        own = page(api, filters)["next_cursor"]
        page(api, f"{filters}&cursor={own}")
        page(api, f"type=checkout.voided&checkout_uuid={about}&cursor={own}")
        for other in (
            "",
            "&type=checkout.voided",
            f"&checkout_uuid={about}",
            f"&checkout_uuid={about}&type=checkout.authorized",
            f"&checkout_uuid={uuid4()}&type=checkout.voided",
            f"&checkout_uuid={about}&type=checkout.voided&created_after={clock.iso(clock.now())}",
        ):
            refused(api.get(f"events?cursor={own}{other}"), 400, "invalid_cursor")
        refused(rival_api.get(f"events?cursor={own}&{filters}"), 400, "invalid_cursor")
        plain = page(api)["next_cursor"]
        refused(api.get(f"checkouts?sort=updated_at&cursor={plain}"), 400, "invalid_cursor")
        refused(api.get(f"webhooks/deliveries?cursor={plain}"), 400, "invalid_cursor")
        for wrong in ("", "garbage", "%00", plain[:-1], f"{plain}=", "x" * 10_000):
            refused(api.get(f"events?cursor={wrong}"), 400, "invalid_cursor")

    def test_with_an_old_cursor_is_valid(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        since = clock.iso(clock.now() - 29 * DAY)
        found = page(api, f"created_after={since}")
        monkeypatch.setattr("webhooks.api.events.LONGEST_PERIOD", DAY)
        refused(api.get(f"events?created_after={since}"), 422, "validation_failed", "created_after")
        page(api, f"created_after={since}&cursor={found['next_cursor']}")

    def test_with_a_cursor_from_before_deleted_events_is_refused(self, api: Api) -> None:
        today, scope = clock.now().date(), f"events:{api.merchant.pk}::"
        partitions.make(EVENTS, today - 25 * DAY, today)
        good, late = (
            cursor.write_cursor(scope, at, clock.first_id(at), at, at)
            for at in (clock.now() - 24 * DAY, clock.now() - 27 * DAY)
        )
        page(api, f"cursor={good}")
        refused(api.get(f"events?cursor={late}"), 422, "validation_failed", "cursor")

    def test_is_as_far_back_as_events_are_kept(self, api: Api, settings: Settings) -> None:
        settings.WEBHOOK_RETENTION = 7 * DAY
        page(api, f"created_after={clock.iso(clock.now() - 6 * DAY)}")
        beyond = clock.iso(clock.now() - 8 * DAY)
        refused(api.get(f"events?created_after={beyond}"), 422, "validation_failed", "created_after")


@pytest.mark.django_db
@pytest.mark.rule("events.personal")
class TestPersonalData:
    @pytest.fixture
    def ticked(self, api: Api) -> Event:
        ticked = outbox.emit(api.merchant, EventType.OPTED_IN, {"email": "lea@example.com"}, at=clock.now())
        age()
        return ticked

    def allow(self, api: Api) -> None:
        AccessToken.objects.update(scope="webhooks:read customers:read")

    def test_is_withheld_without_the_scope(self, api: Api, ticked: Event) -> None:
        wanted = json.loads(ticked.plain_body)
        (listed,) = page(api)["events"]
        assert listed["event"] == wanted | {"data": None}
        assert b"lea@" not in api.get("events").content
        self.allow(api)
        (listed,) = page(api)["events"]
        assert listed["event"] == wanted and wanted["data"]["email"] == "lea@example.com"

    def test_is_null_once_it_was_deleted(self, api: Api, ticked: Event) -> None:
        self.allow(api)
        Event.objects.update(body=b"", body_deleted_at=clock.now())
        (listed,) = page(api)["events"]
        assert listed["event"] == {
            "id": str(ticked.pk),
            "type": "marketing.opted_in",
            "api_version": "2026-06",
            "created_at": clock.iso(ticked.created_at),
            "data": None,
        }

    def test_is_not_part_of_events_of_a_hold(self, api: Api, held: Checkout) -> None:
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        age()
        assert all(listed["event"]["data"] for listed in page(api)["events"])


@pytest.mark.django_db(transaction=True)
@pytest.mark.rule("events.order")
class TestAWriterWhoIsHeldOpen:
    @pytest.mark.parametrize("seconds", [0.5, pytest.param(20.0, marks=pytest.mark.long)])
    def test_holds_back_later_events_until_it_commits(self, api: Api, rival_api: Api, seconds: float) -> None:
        starts = {reader: page(reader) for reader in (api, rival_api)}
        slow: dict[Api, UUID] = {}
        written, go_on = threading.Event(), threading.Event()

        def write_slowly() -> None:
            with transaction.atomic():
                for reader in starts:
                    slow[reader] = emit_event(reader.merchant).pk
                written.set()
                while not go_on.wait(1):
                    # PostgreSQL ends a session that stays idle in a transaction. This query keeps the session
                    # active.
                    clock.now()
            connection.close()

        writer = threading.Thread(target=write_slowly)
        writer.start()
        assert written.wait(30)
        quick = {reader: self._older_id(reader) for reader in starts}
        ends = threading.Timer(seconds, go_on.set)
        ends.start()
        seen: dict[Api, list[UUID]] = {reader: [] for reader in starts}
        places = dict(starts)

        def read() -> bool:
            for reader in starts:
                places[reader] = page_after(reader, places[reader])
                seen[reader] += ids(places[reader])
            assert go_on.is_set() or not any(seen.values()), "nothing is listed past the writer's beginning"
            return all(len(found) >= 2 for found in seen.values())

        polling.until(read, within=seconds + 10, what="both are listed")
        writer.join()
        assert seen == {reader: [slow[reader], quick[reader]] for reader in starts}

    def _older_id(self, reader: Api) -> UUID:
        """Commit an event, and return its id, which is a minute older than the id of the uncommitted event."""
        made = UUID(int=clock.first_id(clock.now() - 60 * SECOND).int | uuid7().int & (1 << 80) - 1)
        body = json.dumps({"id": str(made)}).encode()
        now = clock.now()
        Event.objects.create(
            id=made, merchant=reader.merchant, type="checkout.voided", body=body, created_at=now
        )
        return made
