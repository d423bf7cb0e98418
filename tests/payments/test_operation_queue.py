"""An operation is due at the right time, and only one process leases it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.db import connection, transaction

from checkout import cancellations, captures, operation_recovery
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from payments import operation_queue, planning
from payments.models import Merchant, Operation
from payments.providers.sandbox import fault_injection
from tests import factories, mates
from tests.factories import CAUSE
from tests.outages import InDoubt, break_down, pass_time, pump


@pytest.mark.django_db
class TestClaimDue:
    def test_leases_no_more_than_requested_with_outdated_statistics(
        self, acme: Merchant, pay: Callable[..., Checkout]
    ) -> None:
        pay(factories.checkout(acme))
        with connection.cursor() as cursor:
            # Let the statistics show a single row, so that the planner prefers a nested loop.
            cursor.execute("ANALYZE payments_operation, payments_payment")
        for _ in range(3):
            cancellations.cancel(acme, pay(factories.checkout(acme)).pk, cause=CAUSE)
        assert len(operation_queue.claim(limit=1)) == 1

    @pytest.mark.rule("doubt.sleeper")
    def test_skips_an_operation_that_another_process_has_leased(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """This process claims an operation, but another process takes the lease before this process reads the row.

        The claim then leaves out the operation.
        """
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        rows, find = Operation.objects, Operation.objects.filter

        def overtaken(**which: Any) -> Any:
            find(kind="void").update(lease_token=uuid4())
            return find(**which)

        monkeypatch.setattr(rows, "filter", overtaken)
        assert operation_queue.claim(limit=20) == []

    def test_leases_an_operation_for_ten_seconds(self, held: Checkout) -> None:
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        before = clock.now()
        (void,) = operation_queue.claim(limit=1)
        assert void.next_attempt_at is not None
        assert before <= void.next_attempt_at - timedelta(seconds=10) <= clock.now()

    def test_is_refused_within_a_transaction_that_could_roll_the_lease_back(self, db: None) -> None:
        with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
            operation_queue.claim(limit=1)


NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY, MINUTE, MICROSECOND = timedelta(days=1), timedelta(minutes=1), timedelta(microseconds=1)


class TestALease:
    @pytest.mark.parametrize(
        ("token", "seconds_left", "is_leased"),
        [(uuid4(), 1, True), (uuid4(), 0, False), (uuid4(), None, False), (None, 1, False)],
    )
    def test_ends_when_the_operation_is_due(
        self, token: UUID | None, seconds_left: int | None, is_leased: bool
    ) -> None:
        due_at = None if seconds_left is None else NOW + timedelta(seconds=seconds_left)
        operation = Operation(lease_token=token, next_attempt_at=due_at)
        assert operation_queue.is_leased(operation, NOW) == is_leased


@pytest.mark.parametrize(
    ("kind", "state", "attempts", "age", "seconds"),
    [
        ("authorize", "needs_action", 99, 15 * MINUTE - MICROSECOND, 5),
        ("authorize", "needs_action", 99, 15 * MINUTE, 60),
        ("authorize", "unknown", 99, MINUTE - MICROSECOND, 2),
        ("authorize", "unknown", 99, MINUTE, 10),
        ("authorize", "unknown", 99, DAY - MICROSECOND, 10),
        ("authorize", "unknown", 99, DAY, 60),
        *(("refund", "pending", attempts, MINUTE, 1) for attempts in (1, 2, 3)),
        *(("refund", "pending", attempts, MINUTE, 2) for attempts in (4, 7)),
        ("refund", "pending", 36, MINUTE, 512),
        ("refund", "pending", 40, MINUTE, 600),
        ("refund", "unknown", 1, MINUTE, 1),
        ("refund", "unknown", 4, MINUTE, 8),
        ("refund", "unknown", 7, MINUTE, 60),
        *(("void", state, 3, MINUTE, 1) for state in ("pending", "unknown")),
        *(("void", state, 4, MINUTE, 2) for state in ("pending", "unknown")),
        ("void", "unknown", 20, MINUTE, 32),
        ("void", "unknown", 24, MINUTE, 60),
        *(("capture", state, 1, MINUTE, 1) for state in ("pending", "unknown")),
        *(("capture", state, 4, MINUTE, 8) for state in ("pending", "unknown")),
        ("capture", "unknown", 5, MINUTE, 10),
        ("capture", "unknown", 5000, MINUTE, 10),
    ],
)
def test_delay_before_the_next_attempt(
    kind: str, state: str, attempts: int, age: timedelta, seconds: int
) -> None:
    operation = Operation(kind=kind, attempts=attempts, created_at=NOW - age)
    delay = operation_queue.retry_delay(operation, Operation.State(state), NOW)
    assert delay == timedelta(seconds=seconds)


@pytest.mark.usefixtures("impatient", "proven")
class TestTheGap:
    def test_grows_up_to_a_maximum(self, held: Checkout) -> None:
        break_down("void", "down", times=3)
        break_down("look_up", "down", times=3)
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        Operation.objects.filter(kind="void").update(attempts=5000)
        pump()
        operation = Operation.objects.get(kind="void")
        assert operation.state == "unknown" and operation.next_attempt_at is not None
        assert operation.next_attempt_at - clock.now() <= timedelta(seconds=60)

    @pytest.mark.rule("doubt.authorize")
    @pytest.mark.parametrize(("age", "seconds"), [(0, 2), (59, 2), (61, 10), (3600, 10), (86_000, 10)])
    def test_of_an_authorization_is_2_s_and_after_a_minute_10_s(
        self, in_doubt: InDoubt, age: int, seconds: int
    ) -> None:
        operation = in_doubt("authorize")
        break_down("look_up", "down")
        pass_time(operation, seconds=age)
        pump()
        operation.refresh_from_db()
        assert operation.next_attempt_at is not None
        wait = operation.next_attempt_at - clock.now()
        assert timedelta(seconds=seconds - 1) < wait <= timedelta(seconds=seconds)

    def test_of_a_capture_ends_at_its_deadline(self, held: Checkout) -> None:
        soon = clock.now() + timedelta(milliseconds=700)
        Checkout.objects.filter(pk=held.pk).update(capture_before=soon, authorized_at=soon - settings.HOLD)
        fault_injection.set_fault(verb="capture", mode="down", times=1)
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert Operation.objects.get(kind="capture").next_attempt_at == soon

    def test_of_a_capture_is_10_s_at_most_after_its_deadline(self, in_doubt: InDoubt) -> None:
        operation = in_doubt("capture", times=2)
        break_down("look_up", "down")
        Operation.objects.filter(pk=operation.pk).update(attempts=20)
        pump()
        operation.refresh_from_db()
        assert operation.state == "unknown" and operation.next_attempt_at is not None
        assert operation.next_attempt_at - clock.now() <= timedelta(seconds=10)


@pytest.mark.usefixtures("proven")
class TestTheOldest:
    def test_is_not_an_operation_that_waits_for_another(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0])
        operation_recovery.finish_due_operations(order.pk)
        tomorrow = clock.now() + timedelta(days=1)
        Operation.objects.filter(share_uuid=shares[0].pk).update(next_attempt_at=tomorrow)
        mates.pay(shares[1], mates.AMYS)
        operation_recovery.finish_due_operations(order.pk)
        amys = Operation.objects.get(share_uuid=shares[1].pk)
        assert operation_queue.oldest_due_at(clock.now()) == amys.next_attempt_at
        operation_recovery.finish_due_operations(order.pk)
        states = Operation.objects.filter(share_uuid__isnull=False).values_list("share_uuid", "state")
        assert dict(states) == {shares[0].pk: "planned", shares[1].pk: "pending"}


@pytest.mark.django_db
def test_a_planned_operation_behind_an_open_one_is_not_due(in_doubt: Callable[..., Operation]) -> None:
    capture, now = in_doubt("capture"), clock.now()
    Operation.objects.filter(pk=capture.pk).update(next_attempt_at=now + timedelta(hours=1))
    planning.plan_operations([capture.payment_id], Operation.Kind.VOID, now=now, cause=CAUSE)
    assert operation_queue.oldest_due_at(now) is None
    Operation.objects.filter(pk=capture.pk).update(state="failed", ended_at=now)
    assert operation_queue.oldest_due_at(now) == now
