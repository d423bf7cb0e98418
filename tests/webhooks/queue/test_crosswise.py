"""Simultaneous operations on the rows of a subscription never deadlock, and their results are correct."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TypeVar
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction

from config.lib import clock
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE
from tests.waiting import wait_for, waiting_for_locks
from tests.webhooks.story import claim_one, record, subscribe
from webhooks import outbox, resending, subscriptions
from webhooks.models import Delivery, EventType, Subscription

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 6
Returned = TypeVar("Returned")


def at_once(verb: Callable[[], Returned]) -> list[Returned]:
    """Call the function in several threads at once, each with its own connection. Return the results."""
    start = threading.Barrier(MANY)

    def call(_: int) -> Returned:
        start.wait(10)
        try:
            return verb()
        finally:
            connection.close()

    with ThreadPoolExecutor(MANY) as pool:
        return list(pool.map(call, range(MANY)))


@pytest.mark.rule("subscription.one")
def test_simultaneous_registrations_create_one_subscription_and_one_secret() -> None:
    acme = Merchant.objects.create(name="Acme")
    told = at_once(lambda: factories.subscribe(acme, url="http://127.0.0.1:9/hooks", event_types=["*"]))
    (secret,) = [registered.signing_secret for registered in told if registered.signing_secret]
    assert [kept.secret for kept in Subscription.objects.get(merchant=acme).secrets.all()] == [secret]


def test_of_simultaneous_rotations_two_succeed_and_the_others_are_refused() -> None:
    acme = subscribe()

    def rotate() -> str | None:
        try:
            return subscriptions.rotate(acme.merchant).signing_secret
        except subscriptions.RotationInProgress as refused:
            assert len(refused.until) == 2
            return None

    told = [secret for secret in at_once(rotate) if secret]
    assert len(told) == len(set(told)) == 2
    signing = {
        kept.secret for kept in acme.secrets.all() if not kept.expires_at or kept.expires_at > clock.now()
    }
    assert len(signing) == 3 and signing > set(told)


def test_ending_a_subscription_never_deadlocks_with_a_void(monkeypatch: pytest.MonkeyPatch) -> None:
    acme, checkout, now = subscribe(), uuid4(), clock.now()
    until = now + timedelta(seconds=100)
    outbox.emit(acme.merchant, EventType.AUTHORIZED, {}, at=now, checkout_uuid=checkout, valid_until=until)
    locked, go_on, failures = threading.Event(), threading.Event(), []
    lock = subscriptions._lock_subscription

    def slowly(merchant: Merchant) -> Subscription:
        found = lock(merchant)
        locked.set()
        go_on.wait(5)
        return found

    def end() -> None:
        try:
            subscriptions.end(acme.merchant)
        except Exception as failure:
            failures.append(failure)
        connection.close()

    monkeypatch.setattr(subscriptions, "_lock_subscription", slowly)
    ending = threading.Thread(target=end)
    ending.start()
    assert locked.wait(5)
    with transaction.atomic():  # a cancellation or a lapse has the same steps
        outbox.supersede_all({checkout: now})
        outbox.emit(acme.merchant, EventType.VOIDED, {}, at=now, checkout_uuid=checkout)
        go_on.set()
        ending.join(0.3)  # the thread now waits for the lock on the superseded delivery
    ending.join(5)
    assert not ending.is_alive() and failures == []


def hold() -> tuple[Delivery, UUID]:
    """Emit a `checkout.authorized` event. Return its delivery and its checkout."""
    acme, checkout, now = subscribe(), uuid4(), clock.now()
    until = now + timedelta(seconds=100)
    event = outbox.emit(
        acme.merchant, EventType.AUTHORIZED, {}, at=now, checkout_uuid=checkout, valid_until=until
    )
    return event.deliveries.get(), checkout


def in_own_connection(verb: Callable[[], Returned]) -> Callable[[], Returned]:
    """Return a function that calls `verb` in a thread, and then closes the thread's database connection."""

    def call() -> Returned:
        try:
            return verb()
        finally:
            connection.close()

    return call


@pytest.mark.rule("event.superseded")
def test_a_hold_that_ends_during_a_record_of_its_attempt_is_not_sent_again() -> None:
    due, checkout = hold()
    claimed = claim_one()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            record(claimed, 503, "HTTP 503")
            ending = pool.submit(in_own_connection(lambda: outbox.supersede_all({checkout: clock.now()})))
            wait_for(lambda: waiting_for_locks() == 1)
        ending.result(5)
    due.refresh_from_db()
    assert (due.status, due.next_attempt_at) == ("superseded", None)


@pytest.mark.rule("event.superseded")
def test_a_hold_that_ends_during_the_start_of_its_attempt_is_not_sent_again() -> None:
    """Check that the delivery is not retried if its attempt fails at the moment when the hold ends.

    The attempt fails before the end of the hold is committed, so other transactions cannot see it yet.
    """
    due, checkout = hold()
    is_superseded, go_on = threading.Event(), threading.Event()

    def end() -> None:
        with transaction.atomic():
            outbox.supersede_all({checkout: clock.now()})
            is_superseded.set()
            go_on.wait(5)

    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            claimed = claim_one()
            ending = pool.submit(in_own_connection(end))
            wait_for(lambda: waiting_for_locks() == 1)
        assert is_superseded.wait(5)
        failing = pool.submit(in_own_connection(lambda: record(claimed, 503, "HTTP 503")))
        wait_for(lambda: failing.done() or waiting_for_locks() == 1)
        go_on.set()
        ending.result(5)
        failing.result(5)
    due.refresh_from_db()
    assert (due.status, due.next_attempt_at) == ("superseded", None)


@pytest.mark.rule("resend.confirmed")
def test_a_hold_that_ends_during_a_resend_of_several_is_left_out() -> None:
    due, checkout = hold()
    record(claim_one(), 404, "HTTP 404")
    resend = in_own_connection(lambda: resending.resend_selected(due.merchant, [due.pk], cause=CAUSE))
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            outbox.supersede_all({checkout: clock.now()})
            sending = pool.submit(resend)
            wait_for(lambda: waiting_for_locks() == 1)
        assert sending.result(5) == (0, 1)
    due.refresh_from_db()
    assert due.status == "parked"
