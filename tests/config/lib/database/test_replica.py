"""Reads on a real replica. A page shows all changes that its reader has made.

If a read on the replica fails, the primary serves it.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import InternalError, connection, transaction
from django.test import Client
from psycopg.errors import ReadOnlySqlTransaction

from checkout.models import Checkout
from config.lib import clock
from config.lib.database import lag, replica
from hosted_page.models import CardTry
from payments import restore_guard
from payments.models import Merchant
from portal.models import Role
from portal.orders import order
from tests import factories
from tests.config.lib.database.standby import Standby, counted, named, running
from tests.factories import make_late
from tests.portal import people, stage
from tests.waiting import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]
LIST = "/portal/checkouts"
BY_REPLICA, BY_PRIMARY = {"replica": 1, "primary": 0}, {"replica": 0, "primary": 1}


def is_there() -> bool:
    """Return whether this query runs on the replica."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery()")
        return bool(cursor.fetchone()[0])


@contextmanager
def within(seconds: float) -> Iterator[None]:
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < seconds


lea = stage.client_of(Role.OWNER)


@pytest.mark.rule("replica.pages")
class TestRead:
    def test_uses_only_the_replica(self, standby: Standby, unpaid: Checkout) -> None:
        standby.catch_up()

        def read() -> list[Any]:
            return [
                is_there(),
                clock.now(),
                order.read_order(unpaid.merchant, unpaid.pk).checkout,
                Merchant.objects.count(),
            ]

        with standby.received_statements() as asked:
            there, _, found, count = replica.read_on_replica(read)
        assert (there, found, count) == (True, unpaid, 1) and not is_there()
        assert [
            len([text for text in asked if part in text]) for part in ("clock_timestamp", "COUNT(", "JOIN")
        ] == [1] * 3

    def test_shows_only_rows_that_the_replica_has(
        self, standby: Standby, lea: Client, acme: Merchant
    ) -> None:
        standby.catch_up()
        standby.pause()
        made = factories.checkout(acme)
        with counted() as by:
            assert made.merchant_order_id not in lea.get(LIST).content.decode()
        assert by == BY_REPLICA
        standby.resume()
        standby.catch_up()
        assert made.merchant_order_id in lea.get(LIST).content.decode()

    def test_cannot_write(self, standby: Standby, acme: Merchant) -> None:
        standby.catch_up()
        lock = transaction.atomic(lambda: list(Merchant.objects.select_for_update()))
        for write in (acme.save, lock):
            with pytest.raises(InternalError) as refused, counted() as by:
                replica.read_on_replica(write)
            assert isinstance(refused.value.__cause__, ReadOnlySqlTransaction) and by == {}

    def test_in_a_transaction_uses_the_primary(self, standby: Standby) -> None:
        with transaction.atomic():
            assert not replica.read_on_replica(is_there)

    def test_within_another_read_uses_the_replica(self, standby: Standby) -> None:
        assert replica.read_on_replica(lambda: (replica.read_on_replica(is_there), is_there())) == (
            True,
            True,
        )

    def test_can_be_sent_to_the_primary_explicitly(self, standby: Standby) -> None:
        def read() -> list[bool]:
            with replica.use_primary():
                own = is_there()
            return [own, is_there()]

        assert replica.read_on_replica(read) == [False, True]

    def test_of_an_unlogged_table_uses_the_primary(self, standby: Standby) -> None:
        standby.catch_up()
        with counted() as by:
            assert replica.read_on_replica(CardTry.objects.count) == 0
        assert by == BY_PRIMARY and lag.required_position() is not None, "the replica is as good as before"

    def test_of_a_value_shared_by_all_threads_uses_the_primary(self, standby: Standby) -> None:
        restore_guard._is_open.invalidate()
        with counted() as by:
            # All threads use this value, so it is read on the primary.
            assert replica.read_on_replica(restore_guard.is_closed) is False
        assert by == BY_REPLICA
        restore_guard._is_open._value, restore_guard._is_open._read_at = True, float("inf")

    def test_lapses_overdue_holds_on_the_primary(self, standby: Standby, lea: Client, held: Checkout) -> None:
        make_late(held)
        standby.catch_up()
        with counted() as by:
            page = lea.get(LIST).content.decode()
        held.refresh_from_db()
        assert by == BY_REPLICA and held.status == "voided" and "Held" not in page.partition("<tbody")[2]

    def test_of_a_file_continues_on_the_primary_if_the_replica_stops(
        self, standby: Standby, lea: Client, acme: Merchant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("portal.files.BATCH", 2)
        made = [factories.checkout(acme).merchant_order_id for _ in range(5)]
        standby.catch_up()
        with counted() as by:
            parts = iter(lea.get(f"{LIST}.csv").streaming_content)  # type: ignore[attr-defined]
            text = b"".join(next(parts) for _ in range(2))
            standby.stop()
            text += b"".join(parts)
        standby.start()
        assert by == {"replica": 1, "primary": 2}
        assert [line.split(b'"')[1].decode() for line in text.splitlines()[1:]] == made[::-1]


@pytest.mark.rule("replica.own_writes")
class TestOwnWrites:
    def test_are_visible_to_the_whole_team_at_once(
        self, standby: Standby, lea: Client, acme: Merchant
    ) -> None:
        colleague = stage.browser(stage.person(acme, Role.VIEWER))
        refunded = stage.captured(acme)
        standby.catch_up()
        standby.pause()
        form = {"step": "refund", "ref": f"portal_{refunded.pk}", "reason": "Moved"}
        assert lea.post(f"{LIST}/{refunded.pk}/refund", form).status_code == 302
        for browser in (lea, colleague):
            with counted() as by:
                assert "Refund" in browser.get(f"{LIST}?status=refunding").content.decode()
                assert refunded.merchant_order_id in browser.get(f"{LIST}?status=refunding").content.decode()
            assert by == {"replica": 0, "primary": 2}

    def test_of_one_merchant_do_not_affect_another_merchant(
        self, standby: Standby, lea: Client, rival: Merchant
    ) -> None:
        stranger = stage.browser(stage.person(rival, Role.OWNER))
        standby.catch_up()
        standby.pause()
        stage.save(lea, name="Acme Tickets Ltd")
        with counted() as by:
            stranger.get(LIST)
        assert by == BY_REPLICA

    def test_are_served_by_the_replica_once_it_has_them(self, standby: Standby, lea: Client) -> None:
        stage.save(lea, country="FR")
        standby.catch_up()
        with counted() as by:
            lea.get(LIST)
        assert by == BY_REPLICA

    @pytest.mark.parametrize("act", ["a file", "a login", "a key"])
    def test_are_visible_in_the_audit_log(
        self, standby: Standby, lea: Client, acme: Merchant, act: str
    ) -> None:
        person, fresh = people.join(acme), Client()
        standby.catch_up()
        standby.pause()
        if act == "a file":
            b"".join(lea.get(f"{LIST}.csv").streaming_content)  # type: ignore[attr-defined]
        elif act == "a login":
            people.log_in(fresh, email=person.email)
        else:
            lea.post("/portal/keys/new", {"name": "Another", "scopes": "checkouts:read"})
        words = {"a file": "Exported a file", "a login": "Logged in", "a key": "Made an API key"}[act]
        page = (fresh if act == "a login" else lea).get("/portal/audit").content.decode()
        # The words occur once in the filter and once in the list.
        assert page.count(words) == 2

    def test_of_operators_are_visible_to_operators(
        self, standby: Standby, client: Client, acme: Merchant
    ) -> None:
        people.operate(client)
        standby.catch_up()
        standby.pause()
        switched = client.post("/admin/payments/switch/add/", {"confirmed": "1", "words": "Fraud?"})
        assert switched.status_code == 302
        with counted() as by:
            assert "Fraud?" in client.get("/admin/operations/").content.decode()
        assert by == BY_PRIMARY

    def test_recorded_on_another_server_are_ignored(
        self, standby: Standby, lea: Client, acme: Merchant
    ) -> None:
        """Log positions that were recorded on a different server are ignored.

        After a restore into a new cluster, a recorded position can be far ahead of the new cluster's log.
        """
        stage.save(lea, country="FR")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE portal_lastwrite SET position = 1::bigint << 60")
        standby.catch_up()
        with counted() as by:
            lea.get(LIST)
        assert by == BY_REPLICA


@pytest.mark.rule("replica.away")
class TestAway:
    def test_delays_only_the_first_request(self, standby: Standby, lea: Client) -> None:
        standby.catch_up()
        standby.stop()
        with counted() as by:
            with within(2.5):
                assert lea.get(LIST).status_code == 200
            with within(1):
                assert lea.get(LIST).status_code == 200
        assert by == {"replica": 0, "primary": 2}
        standby.start()
        standby.catch_up()
        with counted() as by:
            lea.get(LIST)
        assert by == BY_REPLICA

    def test_silence_delays_one_request_by_a_second(self, standby: Standby, lea: Client) -> None:
        standby.catch_up()
        assert lea.get(LIST).status_code == 200
        with standby.frozen(), counted() as by:
            with within(2.5):
                assert lea.get(LIST).status_code == 200
            with within(1):
                assert lea.get(LIST).status_code == 200
            with within(2.5):
                lag.measure_lag()
            with within(1):
                assert lea.get(LIST).status_code == 200
        assert by == {"replica": 0, "primary": 3}

    def test_silence_during_a_query_costs_five_seconds(self, standby: Standby) -> None:
        def read() -> bool:
            if is_there():
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_sleep(9)")
            return True

        with counted() as by, within(7):
            assert replica.read_on_replica(read)
        assert by == BY_PRIMARY and lag.required_position() is None

    def test_a_silent_socket_delays_no_request(self, lea: Client) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            with named(f"postgresql://checkout@127.0.0.1:{port}/checkout?sslmode=disable"):
                with within(2.5):
                    lag.measure_lag()
                with within(1), counted() as by:
                    assert lea.get(LIST).status_code == 200
                assert by == BY_PRIMARY

    def test_a_query_that_replication_cancels_is_repeated_on_the_primary(self, standby: Standby) -> None:
        standby.ask("ALTER SYSTEM SET max_standby_streaming_delay = 0")
        standby.ask("SELECT pg_reload_conf()")
        lock = threading.Timer(0.3, _lock, ["portal_canary"])
        lock.start()

        def read() -> bool:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_is_in_recovery(), pg_sleep(1) FROM (SELECT FROM portal_canary LIMIT 1) AS one"
                )
                return bool(cursor.fetchone()[0])

        with counted() as by:
            assert replica.read_on_replica(read) is False
        lock.join()
        assert by == BY_PRIMARY
        # The replica itself works, so the next read uses it immediately.
        assert replica.read_on_replica(is_there)


def _lock(table: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
    connection.close()


@pytest.mark.rule("replica.away")
class TestMistaken:
    def test_the_primary_itself_is_not_accepted_as_a_replica(self, lea: Client) -> None:
        host = connection.settings_dict["HOST"]
        with named(f"postgresql://checkout@/checkout?host={host}"):
            lag.measure_lag()
            with counted() as by:
                lea.get(LIST)
        assert by == BY_PRIMARY

    def test_a_replica_of_another_server_is_not_used(
        self, standby: Standby, lea: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = lag._read_server_state
        other = place("default")._replace(server="of another cluster, or a branch that was left")
        monkeypatch.setattr(
            lag, "_read_server_state", lambda alias: other if alias == "default" else place(alias)
        )
        lag.measure_lag()
        with counted() as by:
            lea.get(LIST)
        assert by == BY_PRIMARY

    def test_a_promoted_replica_is_not_read_any_more(self, lea: Client) -> None:
        with running() as own, named(own.url):
            own.catch_up()
            assert replica.read_on_replica(is_there)
            own.ask("SELECT pg_promote()")
            wait_for(lambda: own.ask("SELECT pg_is_in_recovery()") is False)
            with counted() as by:
                assert not replica.read_on_replica(is_there) and lea.get(LIST).status_code == 200
                lag.measure_lag()
                assert lag.required_position() is None
            assert by == {"replica": 0, "primary": 2}
