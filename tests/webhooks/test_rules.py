"""What is sent to whom: the envelope, the filter, and what a change of the subscription does to what waits."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from config.lib import clock
from payments.models import Merchant
from tests.conftest import Api
from tests.webhooks.story import claim_one, record
from webhooks import delivery, outbox, subscriptions
from webhooks.models import Attempt, Delivery, Event, EventType, SigningSecret

pytestmark = pytest.mark.django_db

OLD_URL, NEW_URL = "http://127.0.0.1:9/old", "http://127.0.0.1:9/new"
HAPPENED_AT = datetime(2026, 6, 1, 18, 32, 7, 418_999, tzinfo=UTC)
CHECKOUT = UUID("01890000-0000-7000-8000-000000000001")
ALL = list(EventType)
# Which of the four types go out, by the filter.
GOES = {
    ("*",): ALL,
    ("checkout.authorized",): [EventType.AUTHORIZED, EventType.TEST],
    ("checkout.voided",): [EventType.VOIDED, EventType.TEST],
    ("marketing.opted_in",): [EventType.OPTED_IN, EventType.TEST],
    ("checkout.voided", "checkout.authorized"): [EventType.AUTHORIZED, EventType.VOIDED, EventType.TEST],
    ("*", "checkout.voided"): ALL,
}


def register(merchant: Merchant, *event_types: str, url: str = OLD_URL) -> subscriptions.Registered:
    return subscriptions.register(merchant, url=url, event_types=event_types or ("*",))


def happen(merchant: Merchant, event_type: EventType = EventType.VOIDED) -> Event:
    """Something that has just happened."""
    return outbox.emit(merchant, event_type, {"checkout_uuid": str(CHECKOUT)}, at=clock.now())


def claimed_events() -> set[UUID]:
    return {claimed.event_id for claimed in delivery.claim(slots=20, general_slots=20)}


def let_it_be_due() -> None:
    Delivery.objects.filter(status="pending").update(next_attempt_at=clock.now())


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
        assert len({json.loads(happen(acme).plain_body)["id"] for _ in range(20)}) == 20


class TestFilter:
    @pytest.mark.rule("event.test", "subscription.filter")
    @pytest.mark.parametrize(("event_types", "goes"), GOES.items(), ids=" ".join)
    def test_lets_its_types_through_and_tests_always(
        self, acme: Merchant, event_types: tuple[str, ...], goes: list[EventType]
    ) -> None:
        register(acme, *event_types)
        sent = {event_type: happen(acme, event_type).deliveries.count() for event_type in ALL}
        assert sent == {event_type: int(event_type in goes) for event_type in ALL}

    @pytest.mark.parametrize("event_type", ALL)
    def test_without_a_subscription_leaves_the_event_alone(
        self, acme: Merchant, rival: Merchant, event_type: EventType
    ) -> None:
        register(rival)
        happen(acme, event_type)
        assert (Event.objects.get().merchant, Delivery.objects.count()) == (acme, 0)

    @pytest.mark.rule("event.outbox")
    def test_sends_no_event_to_another_merchant(self, acme: Merchant, rival: Merchant) -> None:
        register(acme)
        register(rival, url=NEW_URL)
        happen(acme)
        assert claim_one().url == OLD_URL

    def test_that_is_made_later_brings_nothing_of_before(self, acme: Merchant) -> None:
        happen(acme)
        register(acme)
        later = happen(acme)
        assert claimed_events() == {later.pk}

    def test_that_is_widened_brings_nothing_of_before(self, acme: Merchant) -> None:
        register(acme, "checkout.authorized")
        happen(acme)
        register(acme, "*")
        later = happen(acme)
        assert claimed_events() == {later.pk}

    @pytest.mark.rule("subscription.filter")
    def test_that_is_narrowed_keeps_what_waits(self, acme: Merchant) -> None:
        register(acme, "*")
        waiting = happen(acme)
        register(acme, "checkout.authorized")
        assert happen(acme).deliveries.count() == 0
        assert claimed_events() == {waiting.pk}

    def test_that_is_narrowed_keeps_the_retries(self, acme: Merchant) -> None:
        register(acme, "*")
        event = happen(acme)
        claimed = claim_one()
        register(acme, "checkout.authorized")
        record(claimed, 500, "HTTP 500")
        let_it_be_due()
        assert claimed_events() == {event.pk}


class TestNewUrl:
    @pytest.mark.rule("subscription.new_url")
    def test_takes_what_waits_with_the_same_secret(self, acme: Merchant) -> None:
        made = register(acme)
        event = happen(acme)
        changed = register(acme, url=NEW_URL)
        claimed = claim_one()
        assert (claimed.url, claimed.event_id) == (NEW_URL, event.pk)
        assert changed.signing_secret is None
        assert SigningSecret.objects.get().secret == made.signing_secret

    @pytest.mark.rule("event.same_bytes")
    def test_takes_the_next_attempt_with_the_same_bytes(self, acme: Merchant) -> None:
        register(acme)
        happen(acme)
        first = claim_one()
        register(acme, url=NEW_URL)
        record(first, 500, "HTTP 500")
        let_it_be_due()
        second = claim_one()
        assert (first.url, second.url) == (OLD_URL, NEW_URL)
        assert (second.event_id, second.body) == (first.event_id, first.body)
        assert second.attempt_number == 2

    def test_leaves_the_attempt_in_flight_its_result(self, acme: Merchant) -> None:
        register(acme)
        happen(acme)
        claimed = claim_one()
        register(acme, url=NEW_URL)
        record(claimed, 200)
        assert Delivery.objects.get().status == "delivered"


class TestEnding:
    """`DELETE …/webhooks/subscription`."""

    PATH = "webhooks/subscription"

    @pytest.mark.rule("subscription.end")
    def test_parks_what_waits_and_what_is_to_be_retried(self, api: Api) -> None:
        register(api.merchant)
        happen(api.merchant, EventType.AUTHORIZED)
        record(claim_one(), 500, "HTTP 500")
        happen(api.merchant)
        assert api.delete(self.PATH).status_code == 204
        assert set(Delivery.objects.values_list("status", "next_attempt_at")) == {("parked", None)}
        assert Attempt.objects.count() == 1

    def test_leaves_what_has_ended(self, api: Api) -> None:
        register(api.merchant)
        happen(api.merchant)
        record(claim_one(), 200)
        before = Delivery.objects.values().get()
        api.delete(self.PATH)
        assert Delivery.objects.values().get() == before

    @pytest.mark.parametrize(("http_status", "status"), [(204, "delivered"), (500, "parked")])
    def test_leaves_the_attempt_in_flight_its_result(self, api: Api, http_status: int, status: str) -> None:
        register(api.merchant)
        happen(api.merchant)
        claimed = claim_one()
        api.delete(self.PATH)
        assert Delivery.objects.get().lease_token == claimed.lease_token
        record(claimed, http_status)
        assert Delivery.objects.values_list("status", "next_attempt_at").get() == (status, None)

    def test_lets_no_later_event_out(self, api: Api) -> None:
        register(api.merchant)
        api.delete(self.PATH)
        for event_type in ALL:
            happen(api.merchant, event_type)
        assert (Event.objects.count(), Delivery.objects.count()) == (4, 0)

    def test_touches_no_other_merchants(self, api: Api, rival: Merchant) -> None:
        register(api.merchant)
        register(rival)
        theirs = happen(rival)
        api.delete(self.PATH)
        assert claimed_events() == {theirs.pk}

    @pytest.mark.rule("subscription.end")
    def test_has_a_successor_that_gets_only_what_is_new(self, api: Api) -> None:
        old = register(api.merchant).signing_secret
        happen(api.merchant)
        api.delete(self.PATH)
        happen(api.merchant)
        new = register(api.merchant, url=NEW_URL)
        delivery.end_pointless()
        Delivery.objects.filter(status="pending").update(next_attempt_at=clock.now() - timedelta(hours=1))
        later = happen(api.merchant)
        assert claimed_events() == {later.pk}
        assert new.signing_secret not in (None, old)
        assert [row.secret for row in new.subscription.secrets.all()] == [new.signing_secret]
