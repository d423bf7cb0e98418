"""A booking does not move money at the provider. Another booking can reverse it."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from uuid_utils.compat import uuid7

from checkout import refunds
from checkout.models import Checkout
from config.lib import clock
from payments import bookings
from payments.models import Booking, Operation, Posting
from tests import factories, mates
from tests.factories import CAUSE
from tests.outside import balances

pytestmark = [pytest.mark.django_db, pytest.mark.rule("money.booked")]
NOTE = "By bank transfer"


@pytest.fixture
def refund(captured: Checkout) -> Operation:
    refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
    return Operation.objects.select_related("payment", "resends").get(kind="refund")


def settle_outside(refund: Operation, amount: int = 4000) -> Booking:
    return bookings.settle_outside(refund, amount, note=NOTE, now=clock.now(), cause=CAUSE)


def lines(booking: Booking) -> dict[str, int]:
    return dict(Posting.objects.filter(transaction=booking.pk).values_list("account", "amount"))


class TestSettledOutside:
    def test_is_the_merchant_s_expense(self, captured: Checkout, refund: Operation) -> None:
        booking = settle_outside(refund)
        assert lines(booking) == {"outside": -4000, "merchant": 4000}
        assert (booking.kind, booking.amount, booking.operation) == ("settled_outside", 4000, refund)
        assert (booking.note, booking.actor, booking.checkout_uuid) == (NOTE, CAUSE.actor, captured.pk)
        assert balances(captured) == {"provider": 9000, "outside": -4000, "merchant": -5000}

    def test_of_a_reimbursement_is_what_was_owed_to_the_lead(
        self, order: Checkout, shares: list[Any]
    ) -> None:
        mates.pay(shares[0])
        mates.settled(shares[0])
        reimbursement = Operation.objects.select_related("payment", "resends").get(purpose="reimbursement")
        booking = settle_outside(reimbursement, 1)
        assert lines(booking) == {"outside": -1, "lead": 1}
        assert booking.share_uuid == shares[0].pk

    def test_can_be_reversed_once(self, captured: Checkout, refund: Operation) -> None:
        before = balances(captured)
        booking = settle_outside(refund)
        back = bookings.reverse(booking, note="It never arrived", now=clock.now(), cause=CAUSE)
        assert (back.amount, back.reverses, back.note) == (-4000, booking, "It never arrived")
        assert balances(captured) == before
        with pytest.raises(IntegrityError, match="reverses"), transaction.atomic():
            bookings.reverse(booking, note="Again", now=clock.now(), cause=CAUSE)

    @pytest.mark.parametrize("amount", [0, -4000])
    def test_must_have_a_valid_amount(self, refund: Operation, amount: int) -> None:
        with (
            pytest.raises(IntegrityError, match=r"a_booking_is_of_something|a_reversal_takes_back"),
            transaction.atomic(),
        ):
            settle_outside(refund, amount)


class TestAClosing:
    def test_moves_the_amount_owed_to_the_lead_to_the_merchant(self, captured: Checkout) -> None:
        share = factories.bare_share(captured.pk)
        assert captured.payment is not None
        booking = bookings.close_owed(
            captured.payment, share, 3000, note="It was lost.", now=clock.now(), cause=CAUSE
        )
        assert lines(booking) == {"lead": 3000, "merchant": -3000}
        assert (booking.kind, booking.share_uuid, booking.operation) == ("closing", share, None)
        back = bookings.reverse(booking, note="It was decided anew.", now=clock.now(), cause=CAUSE)
        assert lines(back) == {"lead": -3000, "merchant": 3000}
        assert balances(captured) == {"provider": 9000, "merchant": -9000}


@pytest.mark.parametrize("changes", [{"share_uuid": None}, {"operation": "refund"}])
def test_a_closing_needs_a_share_and_no_refund(refund: Operation, changes: dict[str, Any]) -> None:
    facts: dict[str, Any] = {"share_uuid": uuid7(), "operation": None} | changes
    if facts["operation"]:
        facts["operation"] = refund
    with pytest.raises(IntegrityError, match="a_booking_says_what_it_is_for"), transaction.atomic():
        Booking.objects.create(
            kind="closing",
            payment=refund.payment,
            checkout_uuid=refund.payment.checkout_uuid,
            amount=1,
            actor="operator",
            created_at=clock.now(),
            **facts,
        )
