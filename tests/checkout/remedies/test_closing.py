"""A part of a refund that no card can take is closed as settled otherwise: only as the provider allows, once."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from checkout import captures, refunds
from checkout.models import Checkout
from checkout.proof import proving
from checkout.remedies import asking
from checkout.remedies.admin import _of_settled
from checkout.remedies.asking import NotAllowed
from config.lib import clock
from payments import discrepancies, planning
from payments.models import Booking, Discrepancy, Operation
from payments.outside import bookings
from payments.provider import CARD_CANNOT_TAKE_IT, Record, Verdict
from payments.providers.sandbox import disputing, fault_injection
from payments.providers.sandbox.models import Charge
from tests import factories, mates
from tests.checkout.remedies.remedy import (
    ACCOUNT_CLOSED,
    NOTE,
    close,
    look_into_disputes,
    refuses,
    said,
    send,
)
from tests.factories import CAUSE

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient", "proven")]


def give_back_in_the_dashboard(part: Operation, amount: int) -> None:
    """Book that somebody has given some of a part's payment back there."""
    paid = part.payment
    record = Record(uuid4(), "refund", Verdict.SUCCEEDED, paid.pk, paid.merchant_id, amount, paid.currency)
    bookings.refunded_outside(paid, record, None, note=NOTE, now=clock.now(), cause=CAUSE)


class TestClosingAPart:
    def test_lets_the_refund_go_on_to_its_end(self, unpaid: Checkout, stuck: Operation) -> None:
        close(stuck)
        unpaid.refresh_from_db()
        assert (unpaid.status, unpaid.refunded_amount) == ("refunded", 9000)
        assert unpaid.refunds.get().status == "settled"
        booked = Booking.objects.get()
        assert (booked.kind, booked.amount, booked.account) == ("settled_otherwise", 2000, "merchant")
        assert (booked.operation, booked.note, booked.actor) == (stuck, NOTE, CAUSE.actor)
        assert set(factories.balances(unpaid.pk).values()) == {0}
        assert "outside" in factories.balances(unpaid.pk)
        found = Discrepancy.objects.get(kind="refund_part_failed")
        assert found.closed_at is not None and found.note == NOTE
        assert unpaid.payment_requests.get().status == "refunded"

    def test_ends_its_retries(self, unpaid: Checkout, stuck: Operation) -> None:
        assert planning.parts_like(stuck).filter(state="planned").exists()
        close(stuck)
        mates.pump(unpaid.pk, rounds=2)
        assert not Operation.objects.filter(ended_at=None).exists()
        assert Charge.objects.get(last4="5126").refunded_amount == 0

    def test_lets_the_others_follow(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        (share,) = mates.split(unpaid, 2000)
        pay(unpaid)
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        mates.pay(share)
        assert mates.settled(share) == "reimbursed"
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        fault_injection.set_fault(verb="refund", mode="refund_card_closed", times=1)
        mates.pump(unpaid.pk)
        close(Operation.objects.select_related("payment").get(reason="card_account_closed"))
        unpaid.refresh_from_db()
        assert unpaid.status == "refunding" and proving.breaches() == []
        mates.pump(unpaid.pk)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded"

    def test_is_refused_while_a_card_of_the_order_is_disputed(self, stuck: Operation) -> None:
        disputing.dispute(payment=stuck.payment_id)
        look_into_disputes(stuck)
        refuses(close, stuck, "disputed: the money would go twice")
        refuses(send, stuck, "disputed: the money would go twice")

    @pytest.mark.rule("refund.outside")
    def test_books_no_more_than_is_left_of_the_card(self, unpaid: Checkout, stuck: Operation) -> None:
        give_back_in_the_dashboard(stuck, 500)
        assert _of_settled(stuck)["button"] == "Book £15.00"
        close(stuck)
        unpaid.refresh_from_db()
        assert (unpaid.status, unpaid.refunds.get().status) == ("refunded", "settled")
        assert sorted(Booking.objects.values_list("amount", flat=True)) == [500, 1500]
        assert set(factories.balances(unpaid.pk).values()) == {0}

    @pytest.mark.rule("reimburse.lead")
    def test_books_the_whole_of_what_is_owed_to_the_lead(self, unpaid: Checkout, owed: Operation) -> None:
        """Whatever the lead's card has got besides: that was the merchant's money."""
        give_back_in_the_dashboard(owed, 8000)
        assert _of_settled(owed)["button"] == "Book £20.00"
        close(owed)
        assert factories.balances(unpaid.pk)["lead"] == 0

    @pytest.mark.rule("operator.once")
    def test_twice_books_once(self, stuck: Operation) -> None:
        close(stuck)
        refuses(close, stuck, "settled otherwise before|newest attempt")
        assert Booking.objects.count() == 1

    @pytest.mark.rule("operator.once")
    def test_twice_at_once_books_once(self, monkeypatch: pytest.MonkeyPatch, stuck: Operation) -> None:
        look_up, others = asking.look_up, [stuck]

        def meanwhile(operation: Operation) -> Any:
            outcome = look_up(operation)
            if others:
                close(others.pop())
            return outcome

        monkeypatch.setattr(asking, "look_up", meanwhile)
        with pytest.raises(NotAllowed):
            close(stuck)
        assert Booking.objects.count() == 1

    @pytest.mark.rule("operator.asks_first")
    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ({"reason": "try_again_later"}, r"it failed \(try again later\)"),
            ({"verdict": "succeeded", "reason": ""}, "it succeeded"),
            ({"verdict": "pending", "reason": "", "settles_at": None}, "accepted, and not settled"),
        ],
    )
    def test_is_refused_when_the_provider_says_otherwise(
        self, stuck: Operation, answer: dict[str, Any], words: str
    ) -> None:
        said(stuck, **answer)
        refuses(close, stuck, words)

    def test_is_refused_when_the_provider_says_nothing(self, stuck: Operation) -> None:
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        refuses(close, stuck, "nothing clear")

    def test_is_refused_while_another_attempt_is_under_way(self, unpaid: Checkout, stuck: Operation) -> None:
        fault_injection.set_fault(verb="refund", mode="down", times=1)
        mates.pump(unpaid.pk)
        refuses(close, stuck, "tried again since")

    def test_is_refused_of_the_refund_that_failed_whole(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        paid = pay(unpaid, ACCOUNT_CLOSED)
        captures.capture(paid.merchant, paid.pk, cause=CAUSE)
        refunds.accept(paid.merchant, paid.pk, ref="r-1", cause=CAUSE)
        mates.pump(paid.pk, rounds=2)
        refuses(close, Operation.objects.get(kind="refund"), "has ended")

    def test_is_refused_of_what_is_no_failed_refund(self, unpaid: Checkout, stuck: Operation) -> None:
        for operation in Operation.objects.exclude(pk=stuck.pk):
            refuses(close, operation, "Only a refund that has failed|newest attempt")

    def test_closes_a_reimbursement(self, unpaid: Checkout, owed: Operation) -> None:
        discrepancies.report_operation(owed, "share_not_reimbursed", subject=owed.share_uuid)
        close(owed)
        unpaid.refresh_from_db()
        assert (unpaid.status, unpaid.payment_requests.get().status) == ("captured", "reimbursed")
        assert factories.balances(unpaid.pk) == {"provider": 9000, "lead": 0, "merchant": -9000, "outside": 0}
        assert Discrepancy.objects.get().closed_at is not None
        assert not Operation.objects.filter(ended_at=None).exists()
        refuses(close, owed, "before|newest")

    def test_is_kept_for_ever(self, stuck: Operation) -> None:
        close(stuck)
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            Booking.objects.update(note="Another")

    def test_knows_what_the_bank_says_of_a_closed_account(self, stuck: Operation) -> None:
        assert stuck.reason in CARD_CANNOT_TAKE_IT
