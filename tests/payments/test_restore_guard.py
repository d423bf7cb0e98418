"""A process that is connected to a promoted standby changes no row there, from its first connection on."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.urls import reverse

from checkout import cancellations, captures, refunds, tasks
from checkout.models import Checkout
from config.lib import connection_release
from payments import operation_queue, restore_guard
from payments.restore_guard import ServiceClosed
from tests import factories
from tests.config.lib.database.standby import Standby, running
from tests.conftest import Api
from tests.factories import CAUSE, make_late
from tests.refusals import refused
from tests.waiting import wait_for
from webhooks import delivery

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.rule("restore.closed")]


@pytest.fixture(autouse=True)
def _asks_as_in_production() -> Iterator[None]:
    restore_guard._is_open.invalidate()
    yield
    restore_guard._is_open._value, restore_guard._is_open._read_at = True, float("inf")


@contextmanager
def promoted() -> Iterator[Standby]:
    """Run a promoted standby for the duration of the block.

    The standby has all committed rows, and its timeline is later than the original one.
    """
    with running() as standby:
        standby.ask("SELECT pg_promote(wait => false)")
        wait_for(lambda: not standby.ask("SELECT pg_is_in_recovery()"), within=60)
        yield standby


@contextmanager
def reconnected(standby: Standby) -> Iterator[None]:
    """Connect this process to the standby whenever it opens a new connection, as after a failover.

    The connection pool starts empty and keeps one connection.
    """
    place: dict[str, Any] = connection.settings_dict
    own = place["HOST"], place["PORT"], place["OPTIONS"]

    def move(host: str, port: str, options: dict[str, Any]) -> None:
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]  # missing in the type stubs
        place["HOST"], place["PORT"], place["OPTIONS"] = host, port, options

    # The host and port are left out, because they can be those of PgBouncer.
    others = {name: value for name, value in own[2].items() if name not in ("host", "port")}
    move(str(standby.sockets), "", others | {"pool": {"min_size": 1, "max_size": 1, "timeout": 5}})
    try:
        yield
    finally:
        move(*own)


def actions(api: Api, held: Checkout, captured: Checkout) -> Iterator[Callable[[], Any]]:
    """Yield actions that can be the first use of a new connection in a thread.

    They are API requests, a page, functions that begin operations, and pumps.
    """
    yield lambda: refused(api.get(f"checkouts/{held.pk}"), 503, "service_unavailable")
    yield lambda: refused(api.post(f"checkouts/{held.pk}/capture"), 503, "service_unavailable")
    yield lambda: refused(api.post("checkouts", factories.order()), 503, "service_unavailable")
    yield lambda: _is_503(Client(raise_request_exception=False).get(f"/pay?id={held.pk}"))
    yield lambda: _is_closed(captures.capture, held.merchant, held.pk, cause=CAUSE)
    yield lambda: _is_closed(cancellations.cancel, held.merchant, held.pk, cause=CAUSE)
    yield lambda: _is_closed(refunds.accept, captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
    yield lambda: _is_closed(operation_queue.claim, limit=1)
    yield lambda: _is_closed(delivery.claim, slots=10, general_slots=10)
    yield lambda: _is_closed(tasks.expire_due)


def _is_503(answer: Any) -> None:
    assert answer.status_code == 503


def _is_closed(action: Callable[..., Any], *arguments: Any, **more: Any) -> None:
    """Check that `action` raises ServiceClosed, or returns an empty result because the database is closed."""
    try:
        found = action(*arguments, **more)
    except ServiceClosed:
        return
    assert not found and restore_guard.is_closed()


def books(standby: Standby) -> str:
    """Return the standby's orders, operations, postings and deliveries as text."""
    tables = ("checkout_checkout", "payments_operation", "payments_posting", "webhooks_delivery")
    parts = (f"(SELECT coalesce(jsonb_agg(t ORDER BY t)::text, '') FROM {table} t)" for table in tables)
    return str(standby.ask(f"SELECT {' || '.join(parts)}"))


def test_a_promoted_standby_refuses_the_first_action_of_an_old_thread(
    api: Api, captured: Checkout, pay: Callable[..., Checkout]
) -> None:
    """A thread has read that its database is open. Then its connections are moved to a promoted standby.

    The standby refuses the thread's first action, which changes no row.
    """
    held = pay(factories.checkout(api.merchant))
    make_late(pay(factories.checkout(api.merchant)))
    with promoted() as standby:
        before = books(standby)
        for action in actions(api, held, captured):
            restore_guard._is_open.invalidate()
            assert not restore_guard.is_closed()
            with reconnected(standby):
                action()
                action()
            assert books(standby) == before


def test_a_thread_with_an_outdated_open_mark_gets_no_connection(held: Checkout) -> None:
    """A thread reads that the database is open. Before it connects again, another thread reads that it is closed.

    The first thread then gets no connection.
    """
    with promoted() as standby:
        assert not restore_guard.is_closed()
        with reconnected(standby):
            with ThreadPoolExecutor(max_workers=1) as other:
                other.submit(_is_closed, captures.capture, held.merchant, held.pk, cause=CAUSE).result()
                other.submit(connection_release.release).result()
            with pytest.raises(ServiceClosed):
                Checkout.objects.filter(pk=held.pk).update(status="voided")


@pytest.mark.parametrize("address", ["/api/merchant/v1/checkouts", "/pay"])
def test_a_request_is_refused_if_the_mark_cannot_be_read(address: str) -> None:
    """If the mark cannot be read, the request is refused, because its next query could reach a promoted standby."""

    def fail(execute: Any, sql: str, *more: Any) -> Any:
        if "payments_databasemark" in sql:
            raise OperationalError("The server closed the connection.")
        return execute(sql, *more)

    with connection.execute_wrapper(fail):
        answer = Client().get(address)
    assert (answer.status_code, answer["Retry-After"]) == (503, "30")


def test_a_request_to_a_closed_database_can_read(held: Checkout) -> None:
    """The portal shows pages while the database is closed, even to a thread that saw it open earlier."""
    with promoted() as standby:
        assert not restore_guard.is_closed()
        with reconnected(standby):
            assert Client().get(reverse("account_login")).status_code == 200


def times_read(standby: Standby) -> int:
    """Return how often the mark was read on the standby, according to the standby's log."""
    return (standby.folder / "postgres.log").read_text().count("SELECT FROM payments_databasemark")


def test_costs_one_statement_for_each_connection_and_none_for_a_request(api: Api, held: Checkout) -> None:
    with promoted() as standby, reconnected(standby):
        restore_guard._is_open.invalidate()
        assert restore_guard.is_closed()
        restore_guard.reopen_service()
        assert not restore_guard.is_closed()
        # Prevent the process from reading the mark again after three seconds.
        restore_guard._is_open._value, restore_guard._is_open._read_at = True, float("inf")
        before = times_read(standby)
        for connections_made in (1, 2):
            connection.close_pool()  # type: ignore[attr-defined]
            for _ in range(5):
                assert api.get(f"checkouts/{held.pk}").status_code == 200
                connection.close()
            assert times_read(standby) - before == connections_made
