"""How this process measures the lag of a real replica, and the pages that show the lag."""

import time
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from config.lib.database import lag, replica
from config.monitoring import metrics
from payments.models import Merchant
from portal.models import Role
from tests import factories
from tests.config.lib.database.standby import Standby, counted
from tests.portal import people, stage
from tests.waiting import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.rule("replica.lag")]
LIST = "/portal/checkouts"


class Clock:
    """This process's clock, which advances only when the test says so.

    A busy machine therefore cannot change the lag.
    """

    def __init__(self) -> None:
        self._begin, self.ahead = time.monotonic(), 0.0

    def monotonic(self) -> float:
        return self._begin + self.ahead


@pytest.fixture
def clock(standby: Standby, monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(lag, "time", own)
    wait_for(is_fresh)
    return own


def write(number: int = 1) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_logical_emit_message(true, 'tests', '') FROM generate_series(1, %s)", [number]
        )
        cursor.execute("SELECT pg_current_wal_insert_lsn()::text")
        (position,) = cursor.fetchone()
        wait_for(lambda: is_written(position))


def is_written(position: str) -> bool:
    """Return whether the primary's log is on disk up to this position.

    On the tests' server, a commit does not wait for the disk.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_lsn() >= %s::pg_lsn", [position])
        return bool(cursor.fetchone()[0])


def served(client: Client) -> dict[str, Any]:
    with counted() as by:
        assert client.get(LIST).status_code == 200
    return by


lea = stage.client_of(Role.OWNER)


class TestLag:
    def test_of_an_idle_primary_is_zero(self, standby: Standby, clock: Clock) -> None:
        """The lag of an idle primary stays 0, even after a log segment was closed early.

        `archive_timeout` closes segments early. The next segment then has no entries.
        """
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_switch_wal()")
        for _ in range(3):
            clock.ahead += 60
            wait_for(is_fresh)

    def test_is_the_age_of_the_last_position_that_was_reached(self, standby: Standby, clock: Clock) -> None:
        standby.pause()
        for _ in range(4):
            write()
            clock.ahead += 1
            lag.measure_lag()
        assert lag.lag_seconds() == pytest.approx(4)
        standby.resume()
        wait_for(is_fresh)

    def test_of_an_unreachable_replica_keeps_growing(self, standby: Standby, clock: Clock) -> None:
        standby.stop()
        clock.ahead += 30
        lag.measure_lag()
        assert (
            lag.lag_seconds() == pytest.approx(30)
            and "checkout_replica_lag_seconds 30" in metrics.metrics_text().decode()
        )
        standby.start()


def is_fresh() -> bool:
    lag.measure_lag()
    return lag.lag_seconds() == 0


class TestWhoServes:
    def test_is_the_replica_up_to_five_seconds_and_then_the_primary(
        self, standby: Standby, clock: Clock, lea: Client
    ) -> None:
        standby.catch_up()
        standby.pause()
        write()
        for seconds in (1, 1, 1, 1):
            clock.ahead += seconds
            lag.measure_lag()
            assert served(lea) == {"replica": 1, "primary": 0}
        clock.ahead += 2
        # The primary serves the page even before this process has measured the lag again.
        assert served(lea) == {"replica": 0, "primary": 1}
        lag.measure_lag()
        assert served(lea) == {"replica": 0, "primary": 1}
        standby.resume()
        standby.catch_up()
        assert served(lea) == {"replica": 1, "primary": 0}

    def test_is_the_primary_if_the_lag_is_not_measured(
        self, standby: Standby, clock: Clock, lea: Client
    ) -> None:
        standby.catch_up()
        clock.ahead += 6
        assert served(lea) == {"replica": 0, "primary": 1}

    def test_adds_one_query_on_the_replica(self, standby: Standby) -> None:
        standby.catch_up()
        with standby.received_statements() as asked:
            replica.read_on_replica(Merchant.objects.count)
        assert len(asked) == 2


class TestOperators:
    def test_see_the_lag(self, standby: Standby, clock: Clock, client: Client) -> None:
        people.operate(client)
        standby.catch_up()
        page = client.get("/admin/operations/").content.decode()
        assert "The replica is 0.0 s" in page and "reads use the primary" not in page
        assert "behind" in client.get("/admin/now").content.decode()
        standby.pause()
        factories.MerchantFactory.create()
        write()
        clock.ahead += 7
        lag.measure_lag()
        page = client.get("/admin/operations/").content.decode()
        assert "The replica is 7.0 s" in page and "behind: reads use the primary" in page
        assert "behind: reads use the primary" in client.get("/admin/now").content.decode()

    def test_see_no_lag_without_a_replica(self, client: Client) -> None:
        people.operate(client)
        assert "replica" not in client.get("/admin/operations/").content.decode().lower()
