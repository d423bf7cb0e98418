"""Subscribing, rotating and reading the delivery log, wrongly and oddly."""

import re
from datetime import timedelta
from typing import Any, NoReturn

import psycopg
import pytest
from django.core import signing
from django.db import OperationalError
from django.utils import timezone
from pytest_django.fixtures import Settings

from payments.models import Merchant
from tests.conftest import Api
from tests.refusals import MISSING, nothing_moves, refused, without
from webhooks import subscriptions
from webhooks.models import Attempt, Delivery, Event, EventType, SigningSecret, Subscription

HOOK = "http://127.0.0.1:9/hook"
PATH = "webhooks/subscription"


def subscribe(api: Api, **changes: Any) -> Any:
    return api.post(PATH, without({"url": HOOK, "event_types": ["*"]} | changes))


def test_that_somebody_else_is_changing_may_be_asked_for_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that is locked for too long is no open card operation: there is no checkout here."""

    def locked(*_: object, **__: object) -> NoReturn:
        raise OperationalError from psycopg.errors.LockNotAvailable()

    monkeypatch.setattr(subscriptions, "rotate", locked)
    answer = api.post("webhooks/secret/rotate")
    refused(answer, 503, "service_unavailable")
    assert answer["Retry-After"] == "1"


def refuse(api: Api, param: str, **changes: Any) -> None:
    """Neither a first registration nor a change is made of it."""
    with nothing_moves():
        refused(subscribe(api, **changes), 422, "validation_failed", param)
    assert subscribe(api).status_code == 201
    with nothing_moves():
        refused(subscribe(api, **changes), 422, "validation_failed", param)


@pytest.fixture
def hosted(settings: Settings) -> None:
    """As in sandbox and production, where no webhook goes to this machine."""
    settings.WEBHOOK_LOOPBACK = False


MALFORMED = [
    MISSING,
    None,
    5,
    True,
    [],
    {},
    "",
    "   ",
    "hook",
    "//shop.example/hook",
    "ftp://127.0.0.1/hook",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "http://",
    "http:///hook",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:abc/",
    "http://user@127.0.0.1/",
    "http://user:password@127.0.0.1/",
    "http://127.0.0.1\\@evil.example/",
    "http://127.0.0.1/#fragment",
    "http://127.0.0.1/a b",
    "http://127.0.0.1/\r\nX: y",
    "http://127.0.0.1/\x00",
    "http://127.0.0.1/" + "a" * 5_000,
    "http://shop.example/hook",
]
NOT_PUBLIC = [
    HOOK,
    "https://localhost/hook",
    "https://localhost./hook",
    "https://127.0.0.1/hook",
    "https://127.0.0.1./hook",
    "https://127.1/hook",
    "https://0177.0.0.1/hook",
    "https://2130706433/hook",
    "https://0x7f.1/hook",
    "https://0x7f000001/hook",
    "https://１２７.0.0.1/hook",
    "https://0.0.0.0/hook",
    "https://[::1]/hook",
    "https://[::]/hook",
    "https://[::ffff:10.0.0.1]/hook",
    "https://[64:ff9b::a00:1]/hook",
    "https://[2606:4700::1111]/hook",
    "https://10.0.0.1/hook",
    "https://192.168.1.1/hook",
    "https://169.254.169.254/latest/meta-data",
    "https://100.64.0.1/hook",
    "https://8.8.8.8/hook",
    "https://metadata.google.internal/",
    "https://shop.localhost/",
    "https://printer.local/",
    "https://intranet/hook",
    "https://shop.example:22/hook",
    "https://shop.example:0/hook",
    "https://%31%32%37.0.0.1/hook",
    "https://nobody.invalid/hook",
]


class TestUrl:
    @pytest.mark.parametrize("url", MALFORMED, ids=lambda url: repr(url)[:30])
    def test_that_is_none_is_refused(self, api: Api, url: Any) -> None:
        refuse(api, "url", url=url)

    @pytest.mark.rule("target.public")
    @pytest.mark.usefixtures("hosted")
    @pytest.mark.parametrize("url", NOT_PUBLIC, ids=lambda url: repr(url)[:30])
    def test_that_is_not_public_is_refused(self, api: Api, url: str) -> None:
        with nothing_moves():
            error = refused(subscribe(api, url=url), 422, "validation_failed", "url")
        assert not re.search(r"\d+\.\d+\.\d+", error["details"][0]["message"])


class TestEventTypes:
    @pytest.mark.rule("subscription.types")
    @pytest.mark.parametrize(
        "event_types",
        [
            MISSING,
            None,
            [],
            "*",
            "checkout.voided",
            5,
            {"0": "*"},
            True,
        ],
        ids=lambda types: repr(types)[:20],
    )
    def test_that_are_no_list_are_refused(self, api: Api, event_types: Any) -> None:
        refuse(api, "event_types", event_types=event_types)

    @pytest.mark.rule("subscription.types")
    @pytest.mark.parametrize(
        "name",
        [
            "checkout.captured",
            "webhook.test",
            "Checkout.Voided",
            "checkout.*",
            "**",
            "",
            " *",
            "*\x00",
            None,
            5,
            ["*"],
            {},
        ],
        ids=repr,
    )
    def test_with_an_unknown_name_are_refused_at_its_place(self, api: Api, name: Any) -> None:
        refuse(api, "event_types[1]", event_types=["checkout.voided", name])

    def test_of_a_thousand_names_are_refused(self, api: Api) -> None:
        refuse(api, "event_types", event_types=["checkout.voided"] * 1_000)

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            (["*", "checkout.voided"], ["*", "checkout.voided"]),
            (["checkout.voided", "checkout.voided"], ["checkout.voided"]),
            (
                ["marketing.opted_in", "checkout.authorized", "marketing.opted_in"],
                ["marketing.opted_in", "checkout.authorized"],
            ),
        ],
    )
    def test_are_kept_once_each(self, api: Api, given: list[str], kept: list[str]) -> None:
        answer = subscribe(api, event_types=given, colour="green")
        assert answer.status_code == 201 and answer.json()["data"]["event_types"] == kept
        assert api.get(PATH).json()["data"]["event_types"] == kept


class TestSubscription:
    @pytest.mark.rule("subscription.one")
    def test_shows_its_secret_once(self, api: Api) -> None:
        first = subscribe(api)
        assert first.status_code == 201 and first["Cache-Control"] == "no-store"
        assert set(first.json()["data"]) == {
            "url",
            "event_types",
            "created_at",
            "updated_at",
            "signing_secret",
        }
        again = subscribe(api, url="http://localhost:9/other", event_types=["checkout.voided"])
        assert again.status_code == 200 and "signing_secret" not in again.json()["data"]
        assert again.json()["data"]["url"] == "http://localhost:9/other"
        assert api.get(PATH).json() == again.json()
        assert SigningSecret.objects.get().secret == first.json()["data"]["signing_secret"]

    def test_is_of_its_merchant_alone(self, api: Api, rival_api: Api) -> None:
        subscribe(api)
        with nothing_moves():
            refused(rival_api.get(PATH), 404, "subscription_not_found")
            refused(rival_api.delete(PATH), 404, "subscription_not_found")
            refused(rival_api.post("webhooks/secret/rotate"), 404, "subscription_not_found")

    @pytest.mark.rule("subscription.end")
    def test_ends_once_and_its_successor_has_a_new_secret(self, api: Api) -> None:
        secret = subscribe(api).json()["data"]["signing_secret"]
        ended = api.delete(PATH)
        assert (ended.status_code, ended.content) == (204, b"")
        for answer in (api.get(PATH), api.delete(PATH), api.post("webhooks/secret/rotate")):
            refused(answer, 404, "subscription_not_found")
        assert subscribe(api).json()["data"]["signing_secret"] != secret


class TestRotate:
    ROTATE = "webhooks/secret/rotate"

    @pytest.mark.rule("rotation.revoke")
    @pytest.mark.parametrize("flag", ["true", "", 1, 0, None, [], {}], ids=repr)
    def test_takes_a_boolean_alone(self, api: Api, flag: Any) -> None:
        subscribe(api)
        with nothing_moves():
            answer = api.post(self.ROTATE, {"revoke_previous": flag})
            refused(answer, 422, "validation_failed", "revoke_previous")

    @pytest.mark.rule("rotation.revoke")
    @pytest.mark.parametrize(
        ("query", "body"),
        [
            ("True", {}),
            ("1", {}),
            ("", {}),
            ("true&revoke_previous=true", {}),
            ("true", {"revoke_previous": False}),
            ("false", {"revoke_previous": True}),
        ],
    )
    def test_refuses_an_address_that_says_something_else(
        self, api: Api, query: str, body: dict[str, Any]
    ) -> None:
        subscribe(api)
        with nothing_moves():
            answer = api.post(f"{self.ROTATE}?revoke_previous={query}", body)
            refused(answer, 422, "validation_failed", "revoke_previous")

    @pytest.mark.parametrize(
        ("query", "body", "revokes"),
        [
            ("", None, False),
            ("", {}, False),
            ("", {"revoke_previous": False}, False),
            ("", {"revoke_previous": True}, True),
            ("?revoke_previous=true", None, True),
            ("?revoke_previous=true", {"revoke_previous": True}, True),
            ("?revoke_previous=false", {"colour": "green"}, False),
        ],
    )
    def test_says_until_when_the_previous_one_signs(
        self, api: Api, query: str, body: dict[str, Any] | None, revokes: bool
    ) -> None:
        first = subscribe(api).json()["data"]["signing_secret"]
        rotated = api.post(f"{self.ROTATE}{query}", body).json()["data"]
        assert set(rotated) == {"signing_secret", "previous_secret_expires_at"}
        assert rotated["signing_secret"] != first
        assert (rotated["previous_secret_expires_at"] is None) == revokes

    def test_ten_times_leaves_the_first_three(self, api: Api) -> None:
        first = subscribe(api).json()["data"]["signing_secret"]
        answers = [api.post(self.ROTATE) for _ in range(10)]
        made = [answer.json()["data"]["signing_secret"] for answer in answers[:2]]
        for answer in answers[2:]:
            refused(answer, 409, "rotation_in_progress")
        live = SigningSecret.objects.exclude(expires_at__lte=timezone.now()).order_by("created_at")
        assert [row.secret for row in live] == [first, *made]


def log_attempts(merchant: Merchant, count: int) -> list[Attempt]:
    """Attempts a second apart, newest last, the first of each pair failed, of two types in turn."""
    subscription, _ = Subscription.objects.get_or_create(
        merchant=merchant, ended_at=None, defaults={"url": HOOK, "event_types": ["*"]}
    )
    start, made = timezone.now() - timedelta(hours=1), []
    for number in range(count):
        at = start + timedelta(seconds=Attempt.objects.count())
        kind = EventType.VOIDED if number % 2 else EventType.AUTHORIZED
        event = Event.objects.create(merchant=merchant, type=kind, body=b"{}", created_at=at)
        delivery = Delivery.objects.create(
            merchant=merchant,
            event=event,
            subscription=subscription,
            status="delivered",
            attempt_count=1,
            ended_at=at,
        )
        facts = {"http_status": 200} if number % 2 else {"error_message": "timed out"}
        attempt = Attempt.objects.create(
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
    def test_refuses_a_query_that_makes_no_sense(self, api: Api, param: str, value: str) -> None:
        refused(api.get(f"{self.LOG}?{param}={value}"), 422, "validation_failed", param)

    @pytest.mark.parametrize(
        "text",
        ["", "garbage", "%00", "a:b:c", "é", "MSBPUiAxPTE7LS0=", "' OR 1=1 --", "%F0%9F%8E%9F", "x" * 10_000],
        ids=lambda text: text[:9],
    )
    def test_refuses_a_cursor_that_is_not_its_own(self, api: Api, text: str) -> None:
        refused(api.get(f"{self.LOG}?cursor={text}"), 400, "invalid_cursor")

    @pytest.mark.rule("list.cursor")
    def test_refuses_a_strangers_anothers_and_a_mangled_cursor(self, api: Api, rival_api: Api) -> None:
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

    def test_pages_hold_fifty_unless_told_and_two_hundred_at_most(self, api: Api) -> None:
        log_attempts(api.merchant, 51)
        assert len(api.get(self.LOG).json()["data"]["deliveries"]) == 50
        assert len(api.get(f"{self.LOG}?limit=200").json()["data"]["deliveries"]) == 51


def test_a_signed_cursor_with_other_contents_is_refused(api: Api) -> None:
    forged = signing.dumps(["2026", 5], salt=f"deliveries:{api.merchant.pk}")
    refused(api.get(f"webhooks/deliveries?cursor={forged}"), 400, "invalid_cursor")
