import pytest
from django.db import transaction

from checkout import cancellations, tasks
from checkout.models import Checkout
from checkout.states import OperationInProgress
from payments.models import Operation, Payment
from tests.factories import CAUSE
from webhooks.models import Event


class TestCancel:
    @pytest.mark.rule("cancel.held")
    def test_releases_the_hold_and_notifies_the_merchant_once(self, held: Checkout) -> None:
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        tasks.finish_operations()
        assert Payment.objects.get().status == "voided"
        assert Event.objects.filter(type="checkout.voided").count() == 1

    @pytest.mark.rule("cancel.unpaid")
    def test_ends_an_unpaid_one_without_an_event(self, unpaid: Checkout) -> None:
        ended = cancellations.cancel(unpaid.merchant, unpaid.pk, cause=CAUSE)
        assert (ended.status, ended.void_reason) == ("voided", "merchant_cancel")
        assert not Event.objects.exists()

    def test_refuses_a_captured_checkout(self, captured: Checkout) -> None:
        with pytest.raises(cancellations.NotCancellable):
            cancellations.cancel(captured.merchant, captured.pk, cause=CAUSE)

    def test_refuses_to_run_in_an_open_transaction(self, held: Checkout) -> None:
        with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
            cancellations.cancel(held.merchant, held.pk, cause=CAUSE)

    @pytest.mark.rule("cancel.open_operation")
    def test_refuses_a_checkout_with_a_capture_in_doubt(self, held: Checkout, unclear: Operation) -> None:
        with pytest.raises(OperationInProgress):
            cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        held.refresh_from_db()
        assert held.status == "authorized"
