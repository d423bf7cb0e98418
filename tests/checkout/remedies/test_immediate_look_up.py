"""An operator can immediately look up an operation with an unknown outcome."""

import pytest

from checkout.models import Checkout
from checkout.remedies import immediate_look_up
from checkout.remedies.status_check import NotAllowed
from config.lib import clock
from payments import operation_queue, restore_guard
from payments.models import Operation
from payments.providers.sandbox import fault_injection
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db


class TestLookingItUpNow:
    @pytest.mark.rule("doubt.unknown")
    def test_finishes_an_operation_before_it_is_due(self, unclear: Operation) -> None:
        assert unclear.next_attempt_at and unclear.next_attempt_at > clock.now()
        assert immediate_look_up.look_up_now(unclear.pk).state == "succeeded"
        assert Checkout.objects.get().status == "captured"

    def test_leaves_the_operation_in_doubt_if_the_provider_does_not_answer(self, unclear: Operation) -> None:
        fault_injection.set_fault(verb="capture", mode="down", times=5)
        assert immediate_look_up.look_up_now(unclear.pk).state == "unknown"
        assert Checkout.objects.get().status == "authorized"

    def test_is_refused_while_another_attempt_is_under_way(self, unclear: Operation) -> None:
        operation_queue.make_due(unclear)
        (leased,) = operation_queue.claim(limit=1, operation_uuid=unclear.pk)
        with nothing_moves(), pytest.raises(NotAllowed, match="under way"):
            immediate_look_up.look_up_now(leased.pk)

    @pytest.mark.rule("restore.closed")
    def test_is_refused_in_a_restored_database(
        self, unclear: Operation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(restore_guard, "is_closed", lambda: True)
        with nothing_moves(), pytest.raises(restore_guard.ServiceClosed):
            immediate_look_up.look_up_now(unclear.pk)
        operation_queue.make_due(unclear)
        assert operation_queue.claim(limit=1, operation_uuid=unclear.pk) == []

    @pytest.mark.rule("operator.once")
    def test_is_refused_for_an_operation_that_has_ended(self, unclear: Operation) -> None:
        immediate_look_up.look_up_now(unclear.pk)
        with nothing_moves(), pytest.raises(NotAllowed, match="not in doubt"):
            immediate_look_up.look_up_now(unclear.pk)
