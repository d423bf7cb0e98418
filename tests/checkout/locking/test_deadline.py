"""Once the row is locked, the database's clock decides whether a deadline has passed."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction

from checkout import captures
from checkout.models import ApiCall, Checkout, IdempotencyKey
from config.lib import clock
from payments.models import Operation, Payment
from tests.conftest import Api
from tests.factories import CAUSE
from tests.waiting import wait_for, waiting_for_locks
from webhooks.models import Event

SOON = timedelta(milliseconds=600)


def ends_soon(checkout: Checkout) -> None:
    """Make the hold end in a little more than half a second."""
    deadline = clock.now() + SOON
    rows = Checkout.objects.filter(pk=checkout.pk)
    rows.update(capture_before=deadline, authorized_at=deadline - settings.HOLD)
    checkout.refresh_from_db()


def captured_by_another_connection(checkout: Checkout) -> Checkout:
    try:
        return captures.capture(checkout.merchant, checkout.pk, cause=CAUSE)
    finally:
        connection.close()


def capture_behind_a_lock(checkout: Checkout, *, until: Callable[[], bool]) -> "Future[Checkout]":
    """Start a capture that has to wait for a row lock, and return its future.

    The lock is released as soon as `until` returns true.
    """
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Checkout.objects.locked(checkout.pk)
            capture = pool.submit(captured_by_another_connection, checkout)
            wait_for(lambda: waiting_for_locks() > 0)
            assert clock.now() < (checkout.capture_before or clock.now()), "it came in too late to tell"
            wait_for(until)
            assert not capture.done()
        return capture


@pytest.mark.rule("capture.deadline")
@pytest.mark.django_db(transaction=True)
class TestCaptureThatWaitsForTheRow:
    def test_across_the_deadline_is_refused(self, held: Checkout) -> None:
        ends_soon(held)
        capture = capture_behind_a_lock(held, until=lambda: held.has_lapsed(clock.now()))
        with pytest.raises(captures.NotCapturable):
            capture.result()
        held.refresh_from_db()
        assert (held.status, held.void_reason, held.voided_at) == (
            "voided",
            "auth_expired",
            held.capture_before,
        )
        assert not Operation.objects.filter(kind="capture").exists()
        assert Payment.objects.get().status != "captured"
        assert Event.objects.get(type="checkout.voided").created_at == held.capture_before

    def test_until_just_before_the_deadline_is_accepted(self, held: Checkout) -> None:
        assert capture_behind_a_lock(held, until=lambda: True).result().status == "captured"
        assert Operation.objects.get(kind="capture").state == "succeeded"


def post_behind_a_lock(api: Api, path: str) -> Any:
    """Send a POST. Its database connection waits for a lock for at most a tenth of a second."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '100ms'")
            answer = api.post(path, Idempotency_Key="k")
            cursor.execute("RESET lock_timeout")
            return answer
    finally:
        connection.close()


@pytest.mark.rule("portal.requests")
@pytest.mark.django_db(transaction=True)
def test_a_verb_that_a_locked_row_has_held_up_is_recorded_as_refused(api: Api, held: Checkout) -> None:
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        Checkout.objects.locked(held.pk)
        answer = pool.submit(post_behind_a_lock, api, f"checkouts/{held.pk}/capture").result()
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "operation_in_progress")
    call = ApiCall.objects.get()
    assert (call.status, call.error_code, call.checkout_uuid) == (409, "operation_in_progress", held.pk)
    assert not IdempotencyKey.objects.exists(), "the key is free again"
