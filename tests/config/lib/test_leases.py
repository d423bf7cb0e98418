"""A queue of due rows: the order in which processes take rows, and the lock on a row while a process takes it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pytest
from django.db import connection, transaction

from config.lib import clock
from config.lib.leases import Queue
from payments.providers.sandbox.models import BankNotification

Returned = TypeVar("Returned")


def make_queue(by: str = "") -> Queue[BankNotification]:
    return Queue(BankNotification.objects.all, "due_at", by=by)


def add(due_for: float, attempts: int = 0) -> BankNotification:
    """Add a row that has been due for this many seconds. With a negative number, the row becomes due later."""
    due_at = clock.now() - timedelta(seconds=due_for)
    return BankNotification.objects.create(verdict="succeeded", due_at=due_at, attempts=attempts)


def take(queue: Queue[BankNotification]) -> BankNotification | None:
    return queue.take_oldest(lambda row, now: {"due_at": now + timedelta(hours=1)})


def in_another_process(call: Callable[[], Returned]) -> Returned:
    """Return the result of a call that uses a separate connection to the database."""

    def called() -> Returned:
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(called).result()


@pytest.mark.django_db
class TestOrder:
    def test_takes_each_due_row_once_and_the_oldest_first(self) -> None:
        queue, newer, oldest = make_queue(), add(1), add(2)
        add(-60)
        assert [take(queue), take(queue), take(queue)] == [oldest, newer, None]

    def test_takes_rows_in_the_order_of_the_given_field(self) -> None:
        queue, second, first = make_queue(by="attempts"), add(2, attempts=1), add(1)
        assert [take(queue), take(queue)] == [first, second]

    def test_returns_the_row_with_its_committed_values(self) -> None:
        due = add(1)
        taken = take(make_queue())
        due.refresh_from_db()
        assert taken is not None and due.due_at is not None
        assert taken.due_at == due.due_at and due.due_at > clock.now()


@pytest.mark.django_db(transaction=True)
class TestLocks:
    def test_two_processes_take_different_rows_at_once(self) -> None:
        queue, oldest, newer = make_queue(), add(2), add(1)
        rivals: list[BankNotification | None] = []

        def while_locked(_: BankNotification, now: datetime) -> dict[str, Any]:
            rivals.append(in_another_process(lambda: take(queue)))
            return {"due_at": None}

        assert queue.take_oldest(while_locked) == oldest
        assert rivals == [newer]

    def test_other_processes_can_refer_to_the_row_meanwhile(self) -> None:
        referred: list[BankNotification | None] = []

        def lock_as_a_foreign_key_does() -> BankNotification | None:
            table = BankNotification._meta.db_table
            return BankNotification.objects.raw(f"SELECT * FROM {table} FOR KEY SHARE SKIP LOCKED")[0]

        def while_locked(_: BankNotification, now: datetime) -> dict[str, Any]:
            with_transaction = transaction.atomic()(lock_as_a_foreign_key_does)
            referred.append(in_another_process(with_transaction))
            return {"due_at": None}

        due = add(1)
        assert make_queue().take_oldest(while_locked) == due
        assert referred == [due]

    def test_refuses_to_take_a_row_in_an_open_transaction(self) -> None:
        add(1)
        with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
            take(make_queue())
