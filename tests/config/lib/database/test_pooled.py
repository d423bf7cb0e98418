"""A connection from the pool works, although the pool rarely asks PostgreSQL whether it does."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from psycopg_pool import ConnectionPool

from config.lib.database.pooled import base

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pooled() -> Iterator[base.DatabaseWrapper]:
    own: dict[str, Any] = connection.settings_dict
    pool = {"min_size": 1, "max_size": 1, "timeout": 5}
    wrapper = base.DatabaseWrapper(own | {"OPTIONS": own["OPTIONS"] | {"pool": pool}}, alias="pooled")
    yield wrapper
    wrapper.close_pool()


@pytest.fixture
def asked() -> Iterator[mock.Mock]:
    with mock.patch.object(
        ConnectionPool, "check_connection", side_effect=ConnectionPool.check_connection
    ) as check:
        yield check


def taken(wrapper: base.DatabaseWrapper) -> int:
    """Take a connection as a request does and return it to the pool; return its server's process id."""
    found = wrapper.get_new_connection(wrapper.get_connection_params())
    assert found.execute("SELECT 1").fetchone() == (1,)
    wrapper.pool.putconn(found)
    return int(found.info.backend_pid)


def end(pid: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        assert cursor.fetchone() == (True,)


class TestConnection:
    def test_is_not_asked_while_it_is_in_use(self, pooled: base.DatabaseWrapper, asked: mock.Mock) -> None:
        assert len({taken(pooled) for _ in range(5)}) == 1
        assert asked.call_count == 1

    def test_is_asked_again_when_it_was_not_used_for_a_while(
        self, pooled: base.DatabaseWrapper, asked: mock.Mock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(base, "SURE_SECONDS", 0.0)
        assert len({taken(pooled) for _ in range(5)}) == 1
        assert asked.call_count == 5

    def test_that_its_server_has_ended_is_replaced_unseen(
        self, pooled: base.DatabaseWrapper, asked: mock.Mock
    ) -> None:
        for _ in range(3):
            pid = taken(pooled)
            end(pid)
            assert taken(pooled) != pid
        assert asked.call_count >= 3


class TestTimestamps:
    def test_are_in_utc(self, pooled: base.DatabaseWrapper) -> None:
        found = pooled.get_new_connection(pooled.get_connection_params())
        (early,) = found.execute("SELECT timestamptz '2026-06-01 12:00:00.25+02'").fetchone()
        assert early == datetime(2026, 6, 1, 10, 0, 0, 250_000, UTC) and early.tzinfo is UTC
        assert found.execute("SELECT NULL::timestamptz").fetchone() == (None,)
        pooled.pool.putconn(found)
