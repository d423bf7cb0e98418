"""Refund parts that fail: when they are retried, when they are reported, and when the report is closed."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models import F
from pytest_django.fixtures import Settings

from checkout import captures, refunds
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.proof import ledger_proof
from checkout.remedies import sending
from config.lib import clock
from payments.models import Discrepancy, Operation, Payment
from payments.providers.sandbox.models import Call
from tests import mates, outside
from tests.checkout.settling.test_settle import planned, refund, settle_all
from tests.factories import CAUSE

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted", "proven")]


def share_paid_by_closed_card(order: Checkout, pay: Callable[..., Checkout]) -> PaymentRequest:
    """Capture an order, and let a mate pay a share of £30 with a card to which refunds fail. Return the share."""
    (share,) = mates.split(order, 3000)
    captures.capture(order.merchant, pay(order).pk, cause=CAUSE)
    mates.pay(share, mates.ACCOUNT_CLOSED)
    mates.settled(share)
    return share


def reported() -> list[str]:
    rows = Discrepancy.objects.filter(closed_at=None).exclude(kind__startswith="dispute")
    return list(rows.values_list("kind", flat=True))


class TestAFailure:
    @pytest.mark.rule("refund.failed")
    def test_of_the_only_part_fails_the_refund(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        captures.capture(unpaid.merchant, pay(unpaid, mates.ACCOUNT_CLOSED).pk, cause=CAUSE)
        assert refund(unpaid).status == "captured"
        assert Refund.objects.get().status == "failed"
        assert planned() == []

    @pytest.mark.rule("refund.failed")
    def test_of_one_part_is_tried_again_for_three_days(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        share_paid_by_closed_card(unpaid, pay)
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        outside.settle(unpaid)
        failed, again = Operation.objects.filter(payment__card_last4="5126", kind="refund").order_by("pk")
        assert (again.state, again.amount) == ("planned", 3000)
        assert failed.ended_at and again.next_attempt_at == failed.ended_at + timedelta(hours=1)
        Operation.objects.filter(purpose="refund_part").update(created_at=F("created_at") - timedelta(days=4))
        outside.settle(unpaid)
        unpaid.refresh_from_db()
        assert (unpaid.status, planned()) == ("refunding", [])
        assert Discrepancy.objects.filter(kind="refund_part_failed", closed_at=None).count() == 1

    @pytest.mark.rule("refund.failed")
    def test_of_every_part_fails_no_refund_while_an_operator_has_planned_a_part_again(
        self, unpaid: Checkout, pay: Callable[..., Checkout], settings: Settings
    ) -> None:
        share = share_paid_by_closed_card(unpaid, pay)
        settings.SANDBOX_REFUND_SECONDS = 3600
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk)
        parts = Operation.objects.filter(purpose="refund_part")
        mates_part = parts.get(payment__subject=share.pk)
        self.refuse(mates_part)
        sending.send_again(mates_part.pk, cause=CAUSE)
        self.refuse(parts.get(payment__subject=unpaid.pk))
        assert (Refund.objects.get().status, planned()) == ("pending", [("5126", 3000)])

    def refuse(self, part: Operation) -> None:
        """Let the bank refuse a pending part, and run the pump for only this part."""
        Call.objects.filter(reference=part.pk).update(fails_with="refused", settles_at=clock.now())
        Operation.objects.filter(pk=part.pk).update(next_attempt_at=mates.LONG_AGO)
        mates.finish(part)
        part.refresh_from_db()
        assert part.state == "failed"

    @pytest.mark.rule("refund.goes_on", "dispute.lost")
    def test_after_an_appeal_is_reported_until_the_card_has_the_money(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        """The mate won a dispute and has the money.

        Then the merchant wins the appeal, but the card refuses the refund.
        """
        share = share_paid_by_closed_card(unpaid, pay)
        found = outside.dispute(Payment.objects.get(subject=share.pk))
        outside.decide(found, is_won=False)
        assert refund(unpaid).status == "refunded"
        outside.decide(found, is_won=True)
        settle_all(unpaid)
        parts = Operation.objects.filter(purpose="refund_part")
        parts.exclude(ended_at=None).update(created_at=F("created_at") - timedelta(days=4))
        settle_all(unpaid)
        assert (mates.borne(unpaid)["5126"], planned()) == (3000, [])
        assert reported() == ["refund_part_failed"]
        outside.decide(found, is_won=False)
        assert reported() == [], "the dispute has given it back"

    @pytest.mark.rule("dispute.waits", "money.proof")
    def test_after_an_appeal_waits_for_the_dispute_of_another_card(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        settle_all(unpaid)
        unpaid.refresh_from_db()
        lost = outside.dispute(unpaid.payment)
        outside.decide(lost, is_won=False)
        assert refund(unpaid).status == "refunded"
        others = outside.dispute(shared.payment)
        outside.decide(lost, is_won=True)
        assert (mates.borne(unpaid)["4242"], planned()) == (6000, [])
        assert ledger_proof.find_breaches() == []
        outside.decide(others, is_won=True)
        assert planned() == [("4242", 6000)]
