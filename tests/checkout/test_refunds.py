from collections.abc import Callable
from uuid import UUID

import pytest

from checkout import captures, refunds, tasks
from checkout.models import Checkout, Refund
from checkout.proof import ledger_proof
from payments.models import Merchant, Operation, Payment
from tests import factories
from tests.factories import CAUSE


def settle(checkout: Checkout) -> Checkout:
    """Send the refund. Let the bank settle it, and then look it up."""
    tasks.finish_operations()
    Operation.objects.filter(state="pending").update(next_attempt_at="2020-01-01T00:00Z")
    tasks.finish_operations()
    checkout.refresh_from_db()
    return checkout


@pytest.mark.django_db
class TestAccept:
    @pytest.mark.rule("refund.accepted", "refund.settled")
    def test_refunds_the_whole_amount_once_it_has_settled(self, captured: Checkout) -> None:
        accepted = refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        captured.refresh_from_db()
        assert accepted.is_new and (captured.status, captured.refunded_amount) == ("refunding", 0)
        settle(captured)
        assert (captured.status, captured.refunded_amount) == ("refunded", 9000)
        assert captured.last_refund_at == Refund.objects.get().settled_at
        assert factories.balances(captured.pk) == {"provider": 0, "merchant": 0}
        assert Payment.objects.get().status == "refunded" and ledger_proof.find_breaches() == []

    @pytest.mark.rule("refund.ref")
    def test_a_repeated_ref_creates_no_refund(self, captured: Checkout) -> None:
        first = refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        again = refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        assert (again.refund, again.is_new) == (first.refund, False)
        assert Operation.objects.filter(kind="refund").count() == 1

    @pytest.mark.parametrize("first", ["r-1", "restored_", f"restored_{UUID(int=1)}"])
    def test_a_second_reference_is_refused(self, captured: Checkout, first: str) -> None:
        refunds.accept(captured.merchant, captured.pk, ref=first, cause=CAUSE)
        with pytest.raises(refunds.NotRefundable):
            refunds.accept(captured.merchant, captured.pk, ref="r-2", cause=CAUSE)
        assert Refund.objects.get().merchant_refund_ref == first

    def test_a_ref_of_another_checkout_is_refused(
        self, captured: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        other = pay(factories.checkout(captured.merchant))
        captures.capture(other.merchant, other.pk, cause=CAUSE)
        with pytest.raises(refunds.RefundRefConflict):
            refunds.accept(other.merchant, other.pk, ref="r-1", cause=CAUSE)
        other.refresh_from_db()
        assert other.status == "captured"

    def test_a_held_checkout_is_refused(self, held: Checkout) -> None:
        with pytest.raises(refunds.NotRefundable):
            refunds.accept(held.merchant, held.pk, ref="r-1", cause=CAUSE)
        assert not Refund.objects.exists()

    def test_another_merchant_finds_no_checkout(self, captured: Checkout, rival: Merchant) -> None:
        with pytest.raises(Checkout.DoesNotExist):
            refunds.accept(rival, captured.pk, ref="r-1", cause=CAUSE)
        assert not Refund.objects.exists()


@pytest.mark.rule("refund.failed")
@pytest.mark.django_db
class TestFailure:
    def test_returns_to_captured_and_allows_a_new_ref(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        checkout = pay(unpaid, "4000000000005126")
        captures.capture(checkout.merchant, checkout.pk, cause=CAUSE)
        refunds.accept(checkout.merchant, checkout.pk, ref="r-1", cause=CAUSE)
        settle(checkout)
        refund = Refund.objects.get()
        assert (checkout.status, checkout.refunded_amount) == ("captured", 0)
        assert (refund.status, refund.failure_reason) == ("failed", "card_account_closed")
        assert factories.balances(checkout.pk) == {"provider": 9000, "merchant": -9000}
        assert not refunds.accept(checkout.merchant, checkout.pk, ref="r-1", cause=CAUSE).is_new
        assert refunds.accept(checkout.merchant, checkout.pk, ref="r-2", cause=CAUSE).is_new
