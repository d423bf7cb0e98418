"""When an operation is due, and which process leases it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection

from checkout import cancellations, captures, operation_recovery
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from payments import operation_queue
from payments.models import Merchant, Operation
from payments.providers.sandbox import fault_injection
from tests import factories, mates
from tests.factories import CAUSE
from tests.outages import InDoubt, break_down, pass_time, pump


@pytest.mark.django_db
class TestClaimDue:
    def test_leases_no_more_than_asked_whatever_the_planner_believes(
        self, acme: Merchant, pay: Callable[..., Checkout]
    ) -> None:
        pay(factories.checkout(acme))
        with connection.cursor() as cursor:
            # The planner's statistics then show a single row, so that it prefers a nested loop.
            cursor.execute("ANALYZE payments_operation, payments_payment")
        for _ in range(3):
            cancellations.cancel(acme, pay(factories.checkout(acme)).pk, cause=CAUSE)
        assert len(operation_queue.claim(limit=1)) == 1

    @pytest.mark.rule("doubt.sleeper")
    def test_skips_an_operation_that_another_process_has_leased(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another process leases a claimed operation before this process reads its row.

        This process then leaves the operation out.
        """
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        rows, find = Operation.objects, Operation.objects.filter

        def overtaken(**which: Any) -> Any:
            find(kind="void").update(lease_token=uuid4())
            return find(**which)

        monkeypatch.setattr(rows, "filter", overtaken)
        assert operation_queue.claim(limit=20) == []


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
