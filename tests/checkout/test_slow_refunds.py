"""Refunds that cannot finish, and what must not wait for them."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models import F

from checkout import refunds, transitions
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.proof import proving
from config.lib import clock
from payments.models import Discrepancy, Operation
from payments.providers.sandbox.models import Charge
from tests import mates
from tests.checkout.test_doubtful_payments import break_down
from tests.factories import CAUSE

pytestmark = pytest.mark.django_db
ACCOUNT_CLOSED = "4000000000005126"


@pytest.fixture
def shares(unpaid: Checkout, pay: Callable[..., Checkout]) -> list[PaymentRequest]:
    """£90.00, captured: one mate is asked for £20.00, another for £30.00."""
    asked = mates.split(unpaid, 2000, 3000)
    pay(unpaid)
    transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    return asked


def give_back(order: Checkout) -> Refund:
    return refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE).refund


@pytest.mark.rule("refund.goes_on")
class TestAPartThatTheCardCannotTake:
    def parts(self, refund: Refund) -> list[Operation]:
        return list(Operation.objects.filter(refund_uuid=refund.pk, account="lead").order_by("created_at"))

    def test_is_tried_for_three_days_and_told_once(
        self, unpaid: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0], ACCOUNT_CLOSED)
        mates.pump(unpaid.pk)
        refund = give_back(unpaid)
        for _ in range(4):
            mates.pump(unpaid.pk, rounds=2)
        assert len(self.parts(refund)) > 3
        assert [row.kind for row in Discrepancy.objects.all()] == ["refund_part_failed"]
        Refund.objects.update(created_at=F("created_at") - timedelta(days=3))
        mates.pump(unpaid.pk, rounds=2)
        assert {part.state for part in self.parts(refund)} == {"failed"}
        unpaid.refresh_from_db()
        assert unpaid.status == "refunding" and proving.breaches() == []
        assert Discrepancy.objects.count() == 1


class TestAMateWhoIsInDoubt:
    def test_holds_up_no_other_card(self, unpaid: Checkout, shares: list[PaymentRequest]) -> None:
        break_down("authorize", "done_then_reset")
        break_down("look_up", "down", times=99)
        mates.pay(shares[0])
        refund = give_back(unpaid)
        break_down("look_up", "down", times=1)
        mates.pump(unpaid.pk, rounds=2)
        break_down("look_up", "down", times=0)
        whole = Operation.objects.get(refund_uuid=refund.pk)
        assert (whole.amount, whole.payment.subject) == (9000, unpaid.pk)

    @pytest.mark.rule("refund.waits")
    def test_is_given_up_after_an_hour_and_the_refund_ends(
        self, unpaid: Checkout, shares: list[PaymentRequest]
    ) -> None:
        break_down("authorize", "done_then_reset")
        mates.pay(shares[0])
        give_back(unpaid)
        doubt = Operation.objects.get(payment__subject=shares[0].pk)
        self.ask_in_vain(unpaid, rounds=4)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunding"
        Operation.objects.filter(pk=doubt.pk).update(created_at=clock.now() - timedelta(minutes=61))
        self.ask_in_vain(unpaid, rounds=1)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded"
        mates.pump(unpaid.pk, rounds=3)
        assert Charge.objects.get(amount=2000).state == "voided", "what is found later is let go"
        assert proving.breaches() == []

    def ask_in_vain(self, order: Checkout, *, rounds: int) -> None:
        """The bank is silent about the mate's card alone."""
        for _ in range(rounds):
            mates_card = Operation.objects.filter(kind="authorize", ended_at=None)
            mates_card.update(next_attempt_at="2020-01-01T00:00Z")
            break_down("look_up", "down")
            mates.finish(mates_card.get())
            break_down("look_up", "down", times=0)
            others = Operation.objects.filter(ended_at=None).exclude(kind="authorize")
            others.update(next_attempt_at="2020-01-01T00:00Z")
            for operation in others:
                mates.finish(operation)


class TestAMatesCapture:
    """In doubt when the order is refunded, it is not sent again, but proven by a fence not to have happened."""

    @pytest.mark.parametrize(("mode", "end"), [("down", "cancelled"), ("done_then_reset", "refunded")])
    def test_is_proven(self, unpaid: Checkout, shares: list[PaymentRequest], mode: str, end: str) -> None:
        break_down("capture", mode)
        mates.pay(shares[0])
        mates.pump(unpaid.pk)
        assert Operation.objects.get(payment__subject=shares[0].pk, kind="capture").state == "unknown"
        give_back(unpaid)
        assert mates.settled(shares[0]) == end
        captures = Operation.objects.filter(payment__subject=shares[0].pk, kind="capture")
        assert captures.get().attempts == 2
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded" and proving.breaches() == []
        assert sum(row.amount - row.refunded_amount for row in Charge.objects.filter(state="captured")) == 0
