"""The delivery log in the API can be filtered and paged, and shows only the merchant's own deliveries."""

from datetime import timedelta

import pytest
from django.core import signing
from django.utils import timezone

from config.lib import clock
from payments.models import Merchant
from tests.conftest import Api
from tests.refusals import refused
from tests.webhooks.api.story import HOOK
from webhooks.models import Attempt, Delivery, Event, EventType, Subscription


def log_attempts(merchant: Merchant, count: int) -> list[Attempt]:
    """Create attempts at intervals of one second. Return them, newest last.

    Attempts to deliver `checkout.authorized` and `checkout.voided` alternate. Those for `checkout.authorized`
    fail.
    """
    subscription, _ = Subscription.objects.get_or_create(
        merchant=merchant, ended_at=None, defaults={"url": HOOK, "event_types": ["*"]}
    )
    start, made = timezone.now() - timedelta(hours=1), []
    for number in range(count):
        at = start + timedelta(seconds=Attempt.objects.count())
        kind = EventType.VOIDED if number % 2 else EventType.AUTHORIZED
        event = Event.objects.create(merchant=merchant, type=kind, body=b"{}", created_at=at)
        delivery = Delivery.objects.create(
            id=clock.new_id_of_same_time(event.pk),
            event_type=kind,
            merchant=merchant,
            event=event,
            subscription=subscription,
            status="delivered",
            attempt_count=1,
            ended_at=at,
        )
        facts = {"http_status": 200} if number % 2 else {"error_message": "timed out"}
        attempt = Attempt.objects.create(
            id=clock.new_id_of_same_time(event.pk),
            merchant=merchant,
            delivery=delivery,
            number=1,
            event_type=event.type,
            is_delivered="http_status" in facts,
            started_at=at,
            ended_at=at,
            duration_ms=7,
            **facts,
        )
        made.append(attempt)
    return made


class TestDeliveries:
    LOG = "webhooks/deliveries"

    @pytest.mark.parametrize(
        ("param", "value"),
        [
            *(("limit", value) for value in ("0", "-1", "201", "abc", "1.5", "", "1e1", "%2B5", "９", "2%20")),
            *(("limit", value) for value in ("9223372036854775808", "9" * 50, "%00", "1&limit=2")),
            ("cursor", "a&cursor=b"),
            ("event_type", "checkout.captured"),
            ("event_type", "*"),
            ("event_type", "%00"),
            ("event_type", ""),
            ("event_id", "abc"),
            ("event_id", "%00"),
            ("event_id", "1' OR '1'='1"),
            ("status", "parked"),
            ("status", "Delivered"),
        ],
    )  # fmt: skip
    def test_refuses_an_invalid_query(self, api: Api, param: str, value: str) -> None:
        refused(api.get(f"{self.LOG}?{param}={value}"), 422, "validation_failed", param)

    @pytest.mark.parametrize(
        "text",
        ["", "garbage", "%00", "a:b:c", "é", "MSBPUiAxPTE7LS0=", "' OR 1=1 --", "%F0%9F%8E%9F", "x" * 10_000],
        ids=lambda text: text[:9],
    )
    def test_refuses_an_invalid_cursor(self, api: Api, text: str) -> None:
        refused(api.get(f"{self.LOG}?cursor={text}"), 400, "invalid_cursor")

    @pytest.mark.rule("list.cursor")
    def test_refuses_a_cursor_that_is_foreign_from_another_list_or_changed(
        self, api: Api, rival_api: Api
    ) -> None:
        log_attempts(api.merchant, 2)
        own = api.get(f"{self.LOG}?limit=1").json()["data"]["next_cursor"]
        assert api.get(f"{self.LOG}?cursor={own}").status_code == 200
        refused(rival_api.get(f"{self.LOG}?cursor={own}"), 400, "invalid_cursor")
        refused(api.get(f"checkouts?cursor={own}"), 400, "invalid_cursor")
        for mangled in (own[:-1], own[1:], own.swapcase(), f"{own}="):
            refused(api.get(f"{self.LOG}?cursor={mangled}"), 400, "invalid_cursor")

    @pytest.mark.rule("log.entries")
    def test_shows_one_entry_per_attempt_newest_first(self, api: Api, rival: Merchant) -> None:
        made = log_attempts(api.merchant, 2)
        log_attempts(rival, 1)
        page = api.get(self.LOG).json()["data"]
        assert page["next_cursor"] is None and len(page["deliveries"]) == 2
        newest, oldest = page["deliveries"]
        assert set(newest) == {
            "event_id", "event_type", "attempt_number", "http_status", "error_message", "duration_ms",
            "attempted_at", "status", "next_attempt_at", "checkout_uuid",
        }  # fmt: skip
        assert newest["event_id"] == str(made[1].delivery.event_id)
        assert (newest["status"], newest["http_status"], newest["error_message"]) == ("delivered", 200, None)
        assert (oldest["status"], oldest["http_status"], oldest["error_message"]) == (
            "failed",
            None,
            "timed out",
        )

    @pytest.mark.rule("log.entries", "secret.retention")
    @pytest.mark.parametrize("model", [Delivery, Event])
    def test_leaves_out_deliveries_that_were_just_deleted(
        self, api: Api, model: type[Delivery] | type[Event]
    ) -> None:
        gone, stays = log_attempts(api.merchant, 2)
        model.objects.filter(pk__in=[gone.delivery_id, gone.delivery.event_id]).delete()
        (entry,) = api.get(self.LOG).json()["data"]["deliveries"]
        assert entry["event_id"] == str(stays.delivery.event_id)

    @pytest.mark.rule("log.entries")
    def test_filters_by_type_event_and_outcome(self, api: Api) -> None:
        made = log_attempts(api.merchant, 4)
        for query, expected in {
            "event_type=checkout.voided": [made[3], made[1]],
            "status=failed": [made[2], made[0]],
            "status=delivered&event_type=checkout.authorized": [],
            f"event_id={made[2].delivery.event_id}": [made[2]],
            "limit=1": [made[3]],
        }.items():
            entries = api.get(f"{self.LOG}?{query}").json()["data"]["deliveries"]
            assert [entry["event_id"] for entry in entries] == [
                str(row.delivery.event_id) for row in expected
            ]

    def test_pages_without_repeat_or_gap_while_rows_are_added(self, api: Api) -> None:
        made = log_attempts(api.merchant, 7)
        same = made[3].started_at
        Attempt.objects.filter(pk__in=[row.pk for row in made[2:5]]).update(started_at=same)
        seen, more = [], "?limit=2"
        while more:
            page = api.get(f"{self.LOG}{more}").json()["data"]
            seen += [entry["event_id"] for entry in page["deliveries"]]
            log_attempts(api.merchant, 1)
            more = f"?limit=2&cursor={page['next_cursor']}" if page["next_cursor"] else ""
        assert seen == [str(row.delivery.event_id) for row in reversed(made)]

    def test_pages_have_fifty_rows_by_default_and_two_hundred_at_most(self, api: Api) -> None:
        log_attempts(api.merchant, 51)
        assert len(api.get(self.LOG).json()["data"]["deliveries"]) == 50
        assert len(api.get(f"{self.LOG}?limit=200").json()["data"]["deliveries"]) == 51


def test_a_signed_cursor_with_other_contents_is_refused(api: Api) -> None:
    forged = signing.dumps(["2026", 5], salt=f"deliveries:{api.merchant.pk}")
    refused(api.get(f"webhooks/deliveries?cursor={forged}"), 400, "invalid_cursor")
