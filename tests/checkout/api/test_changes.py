"""The list of changed checkouts: a client that follows the cursor gets every change, even while rows are written."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F

from checkout import captures, given_up_cards
from checkout.models import Checkout
from config.lib import clock
from config.lib.database import feed_horizon
from payments import operation_queue
from payments.models import Operation
from payments.provider import Verdict
from payments.providers.sandbox import fault_injection
from tests import factories, mates
from tests.conftest import Api
from tests.factories import CAUSE
from tests.hosted_page.browsers import ChallengedLead
from tests.journeys import polling
from tests.outages import pump
from tests.refusals import refused


def age(seconds: int = 5) -> None:
    """Make every checkout look as if it last changed `seconds` seconds earlier."""
    Checkout.objects.update(updated_at=F("updated_at") - timedelta(seconds=seconds))


def date_operation(operation: Operation, *, seconds_ago: int) -> None:
    """Make an operation look as if it began some seconds ago and has had no response yet."""
    operation.created_at, operation.state = clock.now() - timedelta(seconds=seconds_ago), "in_flight"
    operation.save(update_fields=["created_at", "state"])


def changes(api: Api, cursor: str = "", more: str = "") -> tuple[list[str], str]:
    found: dict[str, Any] = api.get(
        f"checkouts?sort=updated_at&cursor={cursor}{more}".replace("&cursor=&", "&")
    ).json()
    return [row["checkout_uuid"] for row in found["data"]["checkouts"]], found["data"]["next_cursor"]


def first_page(api: Api, more: str = "") -> tuple[list[str], str]:
    found = api.get(f"checkouts?sort=updated_at{more}").json()["data"]
    return [row["checkout_uuid"] for row in found["checkouts"]], found["next_cursor"]


@pytest.mark.django_db
@pytest.mark.rule("list.changes")
class TestTheList:
    def test_comes_in_the_order_of_the_last_change(self, api: Api, pay: Callable[..., Checkout]) -> None:
        one, two, three = (factories.checkout(api.merchant) for _ in range(3))
        age()
        pay(one)
        age()
        found, cursor = first_page(api)
        assert found == [str(two.pk), str(three.pk), str(one.pk)]
        captures.capture(two.merchant, pay(two).pk, cause=CAUSE)
        age()
        found, cursor = changes(api, cursor)
        assert found == [str(two.pk)]
        assert changes(api, cursor) == ([], cursor)

    def test_returns_a_cursor_even_if_it_is_empty(self, api: Api) -> None:
        found, cursor = first_page(api)
        assert found == [] and cursor
        made = factories.checkout(api.merchant)
        assert changes(api, cursor)[0] == [], "a change is listed once nobody can write before it any more"
        age()
        assert changes(api, cursor)[0] == [str(made.pk)]

    def test_a_cursor_keeps_the_start_of_an_empty_page(self, api: Api) -> None:
        factories.checkout(api.merchant)
        age(100)
        start = (clock.now() - timedelta(minutes=1)).replace(microsecond=0)
        found, cursor = first_page(api, f"&updated_after={clock.iso(start)}")
        assert found == [] and changes(api, cursor) == ([], cursor)
        at_start, later = (factories.checkout(api.merchant) for _ in range(2))
        Checkout.objects.filter(pk=at_start.pk).update(updated_at=start)
        Checkout.objects.filter(pk=later.pk).update(updated_at=start + timedelta(milliseconds=1))
        assert changes(api, cursor)[0] == [str(later.pk)]

    def test_never_begins_in_the_future(self, api: Api) -> None:
        near, beyond = (clock.iso(clock.now() + timedelta(seconds=ahead)) for ahead in (50, 70))
        assert first_page(api, f"&updated_after={near}")[0] == []
        assert api.get(f"checkouts?updated_after={beyond}").status_code == 200
        answer = api.get(f"checkouts?sort=updated_at&updated_after={beyond}")
        assert (answer.status_code, answer.json()["error"]["param"]) == (422, "updated_after")
        assert "Must not be in the future. The service’s clock shows 20" in answer.json()["error"]["message"]

    def test_pages_neither_repeat_nor_miss_what_changed_at_the_same_moment(self, api: Api) -> None:
        made = sorted(str(factories.checkout(api.merchant).pk) for _ in range(5))
        Checkout.objects.update(updated_at=clock.now() - timedelta(seconds=5))
        found, cursor = first_page(api, "&limit=2")
        while page := changes(api, cursor, "&limit=2"):
            found += page[0]
            if page[1] == cursor:
                break
            cursor = page[1]
        assert found == made

    def test_lists_an_order_when_an_operation_starts_and_again_when_it_ends(
        self, api: Api, in_doubt: Callable[..., Operation]
    ) -> None:
        """The checkout is listed as changed, although the start of an operation does not write the checkout's row.

        The checkout is listed again when the operation ends.
        """
        older, newer = (factories.checkout(api.merchant) for _ in range(2))
        open_one = in_doubt("capture")
        for row, seconds in ((older, 12), (newer, 8), (open_one.payment.checkout_uuid, 20)):
            Checkout.objects.filter(pk=getattr(row, "pk", row)).update(
                updated_at=clock.now() - timedelta(seconds=seconds)
            )
        order, in_time = str(open_one.payment.checkout_uuid), [str(older.pk), str(newer.pk)]
        date_operation(open_one, seconds_ago=0)
        assert first_page(api)[0] == in_time, "not yet: who writes before it may still come"
        date_operation(open_one, seconds_ago=10)
        in_time.insert(1, order)
        assert first_page(api)[0] == in_time
        found, cursor = first_page(api, "&limit=1")
        while (page := changes(api, cursor, "&limit=1"))[0]:
            found, cursor = found + page[0], page[1]
        assert found == in_time, "whatever a page holds"
        mates.pump(open_one.payment.checkout_uuid)
        Checkout.objects.filter(pk=order).update(updated_at=clock.now() - timedelta(seconds=5))
        assert changes(api, cursor)[0] == [order]

    def test_fills_each_page_even_if_open_operations_move_orders_to_later_pages(
        self, api: Api, pay: Callable[..., Checkout]
    ) -> None:
        made = [factories.checkout(api.merchant) for _ in range(4)]
        for row in made[:2]:
            fault_injection.set_fault(verb="authorize", mode="down", times=1)
            pay(row)
        for number, row in enumerate(made):
            Checkout.objects.filter(pk=row.pk).update(updated_at=clock.now() - timedelta(seconds=30 - number))
        for operation in Operation.objects.select_related("payment"):
            date_operation(operation, seconds_ago=10)
        assert first_page(api, "&limit=1")[0] == [str(made[2].pk)]
        found, cursor = first_page(api, "&limit=3")
        assert found[:2] == [str(made[2].pk), str(made[3].pk)] and len(found) == 3
        assert {*found, *changes(api, cursor)[0]} == {str(row.pk) for row in made}

    def test_lists_an_order_again_after_its_payer_did_not_confirm(self, api: Api, unpaid: Checkout) -> None:
        ChallengedLead(unpaid)
        age(15 * 60)
        _, cursor = first_page(api)
        shown = api.get(f"checkouts/{unpaid.pk}").json()["data"]
        assert shown["pending_operation"] == "authorize"
        waited = timedelta(minutes=11)
        Operation.objects.update(created_at=F("created_at") - waited)
        operation, said = Operation.objects.get(), Verdict.NEEDS_ACTION
        assert given_up_cards.give_up_if_due(unpaid.pk, operation.pk, said, age=waited, is_waited_for=True)
        ended = api.get(f"checkouts/{unpaid.pk}").json()["data"]
        assert "pending_operation" not in ended and ended["updated_at"] > shown["updated_at"]
        age()
        assert changes(api, cursor)[0] == [str(unpaid.pk)]

    def test_takes_filters(self, api: Api) -> None:
        wanted = factories.checkout(api.merchant, merchant_order_id="A")
        factories.checkout(api.merchant, merchant_order_id="B")
        age()
        assert first_page(api, "&merchant_order_id=A")[0] == [str(wanted.pk)]

    @pytest.mark.rule("lapse.whoever")
    def test_lapses_overdue_holds_and_lists_them_again(self, api: Api, held: Checkout) -> None:
        factories.make_late(held)
        age()
        found = api.get("checkouts?sort=updated_at").json()["data"]
        assert [row["status"] for row in found["checkouts"]] == ["voided"]
        age()
        assert changes(api, found["next_cursor"])[0] == [str(held.pk)]

    @pytest.mark.rule("list.cursor")
    def test_refuses_a_cursor_of_the_other_list(self, api: Api) -> None:
        for _ in range(2):
            factories.checkout(api.merchant)
        other = api.get("checkouts?limit=1").json()["data"]["next_cursor"]
        refused(api.get(f"checkouts?sort=updated_at&cursor={other}"), 400, "invalid_cursor")
        refused(api.get(f"checkouts?cursor={first_page(api)[1]}"), 400, "invalid_cursor")
        refused(api.get("checkouts?sort=created_at"), 422, "validation_failed", "sort")


@pytest.mark.django_db
@pytest.mark.rule("list.filters")
class TestTheTimeOfTheLastChange:
    @pytest.mark.parametrize("kind", ["authorize", "capture"])
    def test_is_the_start_of_an_open_operation_and_later_its_end(
        self, api: Api, in_doubt: Callable[..., Operation], kind: str
    ) -> None:
        open_one = in_doubt(kind)
        heard = Checkout.objects.get().updated_at
        assert api.get(f"checkouts/{open_one.payment.checkout_uuid}").json()["data"][
            "updated_at"
        ] == clock.iso(heard)
        age(20)
        date_operation(open_one, seconds_ago=10)
        order = str(open_one.payment.checkout_uuid)
        shown = api.get(f"checkouts/{order}").json()["data"]
        assert (shown["pending_operation"], shown["updated_at"]) == (kind, clock.iso(open_one.created_at))
        for seconds, listed in ((15, [order]), (5, [])):
            since = clock.iso(clock.now() - timedelta(seconds=seconds))
            found = api.get(f"checkouts?updated_after={since}").json()["data"]["checkouts"]
            assert [row["checkout_uuid"] for row in found] == listed
        fault_injection.set_fault(verb=kind, mode="down", times=0)
        mates.pump(open_one.payment.checkout_uuid)
        ended = api.get(f"checkouts/{order}").json()["data"]
        assert "pending_operation" not in ended and ended["updated_at"] > shown["updated_at"]

    def test_is_not_written_when_a_capture_begins(
        self, api: Api, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held.refresh_from_db()
        ask = captures._send_capture

        def reading(*arguments: Any) -> Any:
            assert Checkout.objects.get().updated_at == held.updated_at
            shown = api.get(f"checkouts/{held.pk}").json()["data"]
            began = Operation.objects.get(kind="capture").created_at
            assert (shown["pending_operation"], shown["updated_at"]) == ("capture", clock.iso(began))
            return ask(*arguments)

        monkeypatch.setattr(captures, "_send_capture", reading)
        assert api.post(f"checkouts/{held.pk}/capture").json()["data"]["status"] == "captured"
        assert Checkout.objects.get().updated_at > held.updated_at

    @pytest.mark.rule("read.actions")
    @pytest.mark.parametrize(
        ("status", "verb", "kind"), [("authorized", "cancel", "void"), ("captured", "refund", "refund")]
    )
    def test_does_not_change_when_a_planned_operation_is_sent(
        self, api: Api, at: Callable[[str], Checkout], status: str, verb: str, kind: str
    ) -> None:
        order = at(status)
        api.post(f"checkouts/{order.pk}/{verb}", {"merchant_refund_ref": "r"})
        planned = api.get(f"checkouts/{order.pk}").json()["data"]
        assert planned["pending_operation"] == kind
        (claimed,) = operation_queue.claim(limit=20)
        sent = api.get(f"checkouts/{order.pk}").json()["data"]
        assert claimed.kind == kind and sent == planned
        pump()
        done = api.get(f"checkouts/{order.pk}").json()["data"]
        assert "pending_operation" not in done and done["updated_at"] > planned["updated_at"]

    def test_of_a_creation_is_the_database_time(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        made = factories.checkout(api.merchant)
        assert Checkout.objects.get().updated_at == made.created_at


@pytest.mark.django_db(transaction=True)
@pytest.mark.rule("list.changes")
class TestAWriterWhoIsHeldOpen:
    def test_holds_back_later_changes_until_it_commits(self, api: Api) -> None:
        slow, quick = (factories.checkout(api.merchant) for _ in range(2))
        age(60)
        _, cursor = first_page(api)
        written, go_on = threading.Event(), threading.Event()

        def write_slowly() -> None:
            with transaction.atomic():
                Checkout.objects.locked(slow.pk).touch()
                written.set()
                go_on.wait(30)
            connection.close()

        writer = threading.Thread(target=write_slowly)
        writer.start()
        assert written.wait(30)
        began = feed_horizon.horizon()
        with transaction.atomic():
            Checkout.objects.locked(quick.pk).touch()
        assert changes(api, cursor) == ([], cursor), "nothing is listed past the writer's beginning"
        assert feed_horizon.horizon() == began, "however long it takes"
        go_on.set()
        writer.join()
        both = [str(slow.pk), str(quick.pk)]
        polling.until(lambda: changes(api, cursor)[0] == both, within=5, what="both are listed")
