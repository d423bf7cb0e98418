"""The merchant API over HTTP pages its lists, and needs only a few SQL statements for each response."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from checkout import cancellations, captures
from checkout.models import Checkout
from config.lib import clock
from tests import factories, mates
from tests.conftest import Api
from tests.factories import CAUSE, make_late, order
from tests.outages import leave_in_doubt, pump
from tests.refusals import refused
from webhooks.models import Subscription

pytestmark = pytest.mark.django_db
Bring = Callable[[str], Checkout]
# BEGIN and COMMIT do not count. The sandbox bank's tables do not count either, because a real provider does
# not use our database.
NOT_COUNTED = re.compile(r"BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|.*\bbank_", re.DOTALL)


def read(api: Api, checkout: Checkout) -> dict[str, Any]:
    shown: dict[str, Any] = api.get(f"checkouts/{checkout.pk}").json()["data"]
    return shown


def uuids(answer: Any) -> list[str]:
    return [shown["checkout_uuid"] for shown in answer.json()["data"]["checkouts"]]


class TestList:
    @pytest.mark.rule("list.pages")
    def test_pages_without_repeat_or_gap_while_rows_are_added(self, api: Api) -> None:
        made = [factories.checkout(api.merchant) for _ in range(7)]
        Checkout.objects.filter(pk__in=[row.pk for row in made[2:5]]).update(created_at=made[3].created_at)
        seen, cursor = [], ""
        while True:
            page = api.get(f"checkouts?limit=2{cursor}")
            seen += uuids(page)
            factories.checkout(api.merchant)
            following = page.json()["data"]["next_cursor"]
            if following is None:
                break
            cursor = f"&cursor={following}"
        assert seen == [str(row.pk) for row in reversed(made)]

    @pytest.mark.rule("list.cursor")
    def test_contains_only_orders_of_its_merchant(self, api: Api, rival_api: Api, unpaid: Checkout) -> None:
        theirs = factories.checkout(rival_api.merchant)
        assert uuids(api.get("checkouts")) == [str(unpaid.pk)]
        assert uuids(rival_api.get("checkouts")) == [str(theirs.pk)]
        assert set(api.get("checkouts").json()["data"]) == {"checkouts", "next_cursor"}

    @pytest.mark.rule("list.filters")
    def test_filters_by_status_order_and_times(self, api: Api, pay: Callable[..., Checkout]) -> None:
        old, paid, new = (factories.checkout(api.merchant, merchant_order_id=name) for name in "abc")
        pay(paid)
        day = timedelta(days=1)
        Checkout.objects.filter(pk=old.pk).update(
            created_at=old.created_at - day, updated_at=old.created_at - day
        )
        noon = (timezone.now() - day / 2).strftime("%Y-%m-%dT%H:%M:%SZ")
        for query, expected in {
            "status=created": [new, old],
            "status=authorized": [paid],
            "status=refunded": [],
            "merchant_order_id=a": [old],
            "merchant_order_id=unknown": [],
            f"created_after={noon}": [new, paid],
            f"created_before={noon}": [old],
            f"updated_after={noon}": [new, paid],
            f"created_after={noon}&status=created&merchant_order_id=c": [new],
            "": [new, paid, old],
        }.items():
            assert uuids(api.get(f"checkouts?{query}")) == [str(row.pk) for row in expected], query

    @pytest.mark.rule("lapse.whoever", "list.filters")
    @pytest.mark.parametrize(("status", "ended"), [("authorized", "voided"), ("created", "expired")])
    @pytest.mark.parametrize("query", ["status={ended}", "updated_after={now}"])
    def test_applies_passed_deadlines_before_its_filters(
        self, api: Api, at: Bring, status: str, ended: str, query: str
    ) -> None:
        late = at(status)
        make_late(late)
        now = clock.iso(clock.now())
        assert uuids(api.get(f"checkouts?{query.format(ended=ended, now=now)}")) == [str(late.pk)]
        assert uuids(api.get(f"checkouts?status={status}")) == []

    def test_keeps_an_overdue_order_in_its_status_while_an_operation_is_open(
        self, api: Api, held: Checkout
    ) -> None:
        leave_in_doubt(held)
        make_late(held)
        assert uuids(api.get("checkouts?status=voided")) == []
        assert uuids(api.get("checkouts?status=authorized")) == [str(held.pk)]

    @pytest.mark.rule("list.pages")
    def test_has_fifty_rows_by_default_and_two_hundred_at_most(self, api: Api) -> None:
        for _ in range(51):
            factories.checkout(api.merchant)
        assert len(uuids(api.get("checkouts"))) == 50
        assert len(uuids(api.get("checkouts?limit=200"))) == 51

    @pytest.mark.rule("list.filters")
    @pytest.mark.parametrize(
        ("param", "value"),
        [
            *(("limit", value) for value in ("0", "-1", "201", "abc", "1.5", "", "9223372036854775808")),
            ("limit", "1&limit=1"),
            *(("status", value) for value in ("paid", "Created", "", "created,voided", "%00")),
            *(
                ("created_after", value)
                for value in ("yesterday", "2026-06-01", "2026-06-01T00:00:00", "0", "")
            ),
            ("created_before", "9999-12-31T23:59:59-14:00"),
            ("updated_after", "2026-13-01T00:00:00Z"),
            ("merchant_order_id", "%00"),
            ("merchant_order_id", "x" * 256),
        ],
    )
    def test_refuses_an_invalid_query(self, api: Api, param: str, value: str) -> None:
        refused(api.get(f"checkouts?{param}={value}"), 422, "validation_failed", param)

    @pytest.mark.rule("list.cursor")
    @pytest.mark.parametrize("text", ["", "garbage", "%00", "x" * 10_000])
    def test_refuses_a_cursor_that_it_did_not_issue(self, api: Api, text: str) -> None:
        refused(api.get(f"checkouts?cursor={text}"), 400, "invalid_cursor")


@contextmanager
def at_most(count: int) -> Iterator[list[str]]:
    """Yield a list of the SQL statements in the block. Fail if there are more than `count`."""
    statements: list[str] = []
    with CaptureQueriesContext(connection) as context:
        yield statements
    statements += [row["sql"] for row in context if not NOT_COUNTED.match(row["sql"])]
    assert len(statements) <= count, "\n".join(statements)


@pytest.mark.rule("api.statements")
class TestStatements:
    @pytest.fixture(autouse=True)
    def _key_in_use(self, api: Api) -> None:
        """Use the API key first, because its first call in a minute needs a statement that records the use."""
        api.get("checkouts")

    def test_of_a_read_are_three_at_most(self, api: Api, at: Bring) -> None:
        checkout = at("refunded")
        with at_most(3) as statements:
            read(api, checkout)
        assert sum("oauth2_provider_accesstoken" in statement for statement in statements) == 1

    def test_of_a_list_do_not_grow_with_its_rows(self, api: Api) -> None:
        for _ in range(20):
            factories.checkout(api.merchant)
        with at_most(3):
            assert len(uuids(api.get("checkouts"))) == 20

    @pytest.mark.parametrize(
        "query", ["status=voided", "status=expired", "updated_after=2026-01-01T00:00:00Z"]
    )
    def test_of_a_list_with_a_passed_deadline_are_one_more(
        self, api: Api, unpaid: Checkout, query: str
    ) -> None:
        with at_most(4):
            api.get(f"checkouts?{query}")

    @pytest.mark.parametrize("items", [1, 5, 100])
    def test_of_a_creation_are_eight_at_most(self, api: Api, items: int) -> None:
        lines = [factories.item(quantity=1, unit_price=90) for _ in range(items)]
        with at_most(8):
            assert api.post("checkouts", order(items=lines, total_amount=90 * items)).status_code == 201

    def test_of_a_creation_with_a_key_are_eight_at_most(self, api: Api) -> None:
        with at_most(8):
            assert api.post("checkouts", order(), idempotency_key="k").status_code == 201

    @pytest.mark.parametrize("key", [{}, {"idempotency_key": "k"}], ids=["plain", "with a key"])
    def test_of_a_capture_are_sixteen_at_most(self, api: Api, held: Checkout, key: dict[str, str]) -> None:
        Subscription.objects.create(merchant=api.merchant, url="http://127.0.0.1:9/", event_types=["*"])
        with at_most(16):
            assert api.post(f"checkouts/{held.pk}/capture", **key).status_code == 200


@pytest.mark.rule("list.filters")
class TestTheListOfChanges:
    def seen_since(self, api: Api, at: str) -> list[str]:
        listed = api.get(f"checkouts?updated_after={at}").json()["data"]["checkouts"]
        return [row["checkout_uuid"] for row in listed]

    def test_has_an_order_whose_share_was_paid(
        self, api: Api, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 2000)
        captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        at = str(clock.iso(clock.now()))
        assert self.seen_since(api, at) == []
        mates.pay(share)
        mates.pump(unpaid.pk)
        assert self.seen_since(api, at) == [str(unpaid.pk)]

    def test_has_an_order_whose_release_is_confirmed(self, api: Api, held: Checkout) -> None:
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        at = str(clock.iso(clock.now()))
        pump()
        assert self.seen_since(api, at) == [str(held.pk)]
