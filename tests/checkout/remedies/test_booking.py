"""A refund that was made at the provider is booked as the merchant's."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from checkout import captures, refunds
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.remedies import booking
from checkout.remedies.asking import NotAllowed
from config.lib import clock
from payments import discrepancies, reconciliation
from payments.models import Booking, Discrepancy, Operation, Payment
from payments.providers.sandbox import bank, settling
from payments.providers.sandbox.adapter import SandboxProvider
from payments.providers.sandbox.models import Call, Charge
from portal.models import Role
from tests import factories, mates
from tests.checkout.remedies.remedy import (
    NOTE,
    give_back_at_the_bank,
    give_back_at_the_bank_of,
    refuses,
    send,
)
from tests.factories import CAUSE
from tests.outside import RETURNS, balances, come_back, reimburse, returned, settle
from tests.portal import stage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient", "proven")]


class TestBookingARefund:
    @pytest.fixture
    def told(self, captured: Checkout) -> Discrepancy:
        """Somebody has given £20.00 back in the provider's dashboard, and the night's look has found it."""
        give_back_at_the_bank(captured, 2000)
        reconciliation.compare(captured.created_at)
        return Discrepancy.objects.get(kind="outside_refund")

    def test_takes_it_from_what_the_merchant_is_owed(self, captured: Checkout, told: Discrepancy) -> None:
        booking.book_outside_refund(told.pk, note=NOTE, cause=CAUSE)
        assert factories.balances(captured.pk) == {"provider": 7000, "merchant": -7000, "outside": 0}
        booked = Booking.objects.get()
        assert (booked.kind, booked.amount, booked.reference) == ("refunded_outside", 2000, told.subject)
        told.refresh_from_db()
        assert told.closed_at is not None and told.note == NOTE

    @pytest.mark.rule("operator.once")
    @pytest.mark.parametrize("amount", [2000, 9000])
    @pytest.mark.rule("refund.outside")
    def test_leaves_the_rest_to_a_refund_by_the_merchant(self, captured: Checkout, amount: int) -> None:
        give_back_at_the_bank(captured, amount)
        reconciliation.compare(captured.created_at)
        booking.book_outside_refund(Discrepancy.objects.get().pk, note=NOTE, cause=CAUSE)
        client = stage.browser(stage.person(captured.merchant, Role.OWNER))
        page = client.get(f"/portal/checkouts/{captured.pk}").content.decode()
        assert f"£{amount / 100:.2f} was given back to Visa ending 4242 in the bank’s own dashboard" in page
        assert "place-title" not in page, "it is in more than one place"
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        mates.pump(captured.pk, rounds=2)
        captured.refresh_from_db()
        assert (captured.status, captured.refunded_amount) == ("refunded", 9000)
        assert set(factories.balances(captured.pk).values()) == {0}
        assert (Charge.objects.get().refunded_amount, Payment.objects.get().status) == (9000, "refunded")

    @pytest.mark.rule("refund.outside")
    def test_leaves_the_rest_of_a_split_to_it_too(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 3000)
        captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        mates.pay(share)
        assert mates.settled(share) == "reimbursed"
        unpaid.refresh_from_db()
        give_back_at_the_bank(unpaid, 2000)
        reconciliation.compare(unpaid.created_at)
        booking.book_outside_refund(Discrepancy.objects.get().pk, note=NOTE, cause=CAUSE)
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk, rounds=2)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded" and set(factories.balances(unpaid.pk).values()) == {0}
        assert sorted(Charge.objects.values_list("refunded_amount", flat=True)) == [3000, 9000]

    @pytest.mark.rule("refund.outside")
    @pytest.mark.parametrize("amount", [1000, 3000])
    def test_leaves_the_rest_of_a_mates_card_to_it_too(self, share: PaymentRequest, amount: int) -> None:
        give_back_at_the_bank_of(share.payment_id, amount)
        self.book(share.payment_id)
        refunds.accept(share.checkout.merchant, share.checkout_id, ref="r-1", cause=CAUSE)
        mates.pump(share.checkout_id, rounds=2)
        self.has_gone_back(share)

    @pytest.mark.rule("refund.outside")
    @pytest.mark.parametrize(
        ("whose", "amount"), [("lead", 1000), ("lead", 6000), ("mate", 1000), ("mate", 3000)]
    )
    def test_during_a_refund_lets_it_give_the_rest_back(
        self, share: PaymentRequest, whose: str, amount: int
    ) -> None:
        paid = share.payment_id if whose == "mate" else share.checkout.payment_id
        give_back_at_the_bank_of(paid, amount)
        refunds.accept(share.checkout.merchant, share.checkout_id, ref="r-1", cause=CAUSE)
        mates.pump(share.checkout_id, rounds=3)
        share.checkout.refresh_from_db()
        assert share.checkout.status == "refunding"
        self.book(paid)
        mates.pump(share.checkout_id, rounds=3)
        self.has_gone_back(share)

    def test_is_refused_of_a_share_that_the_lead_has_not_got(
        self, unpaid: Checkout, pay: Callable[..., Checkout], settings: Settings
    ) -> None:
        """Whose money it is then, the lead's or the merchant's, the refund or the reimbursement decides."""
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
        (share,) = mates.split(unpaid, 3000)
        captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        mates.pay(share)
        mates.pump(unpaid.pk)
        share.refresh_from_db()
        assert share.status == "paid"
        give_back_at_the_bank_of(share.payment_id, 1000)
        with pytest.raises(NotAllowed, match="has not got this share yet"):
            self.book(share.payment_id)
        assert not Booking.objects.exists()

    @pytest.fixture
    def share(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> PaymentRequest:
        """Finn has paid £30.00 of £90.00, and Lea has got it back."""
        (share,) = mates.split(unpaid, 3000)
        captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        mates.pay(share)
        assert mates.settled(share) == "reimbursed"
        return PaymentRequest.objects.select_related("checkout__merchant").get(pk=share.pk)

    def book(self, payment_uuid: UUID | None) -> None:
        assert payment_uuid is not None
        reconciliation.compare(Payment.objects.get(pk=payment_uuid).created_at)
        found = Discrepancy.objects.get(kind="outside_refund")
        booking.book_outside_refund(found.pk, note=NOTE, cause=CAUSE)

    def has_gone_back(self, share: PaymentRequest) -> None:
        share = PaymentRequest.objects.select_related("checkout", "payment").get(pk=share.pk)
        assert (share.checkout.status, share.status) == ("refunded", "refunded")
        assert share.payment is not None and share.payment.status == "refunded"
        assert set(factories.balances(share.checkout_id).values()) == {0}
        assert sorted(Charge.objects.values_list("refunded_amount", flat=True)) == [3000, 9000]
        assert not Discrepancy.objects.filter(kind="refund_part_failed", closed_at=None).exists()

    def test_twice_books_once(self, captured: Checkout, told: Discrepancy) -> None:
        booking.book_outside_refund(told.pk, note=NOTE, cause=CAUSE)
        self.refuse(told, "Only an open discrepancy")
        reconciliation.compare(captured.created_at)
        assert not Discrepancy.objects.filter(closed_at=None).exists(), "it is not told again"
        Discrepancy.objects.filter(pk=told.pk).update(closed_at=None)
        self.refuse(told, "booked before")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"verdict": "pending"}, "has succeeded"),
            ({"kind": "void"}, "do not have it"),
            ({"amount": 9001}, "more than we know"),
            ({"amount": 0}, "more than we know"),
        ],
    )
    def test_is_refused_of_what_is_no_settled_refund(
        self, told: Discrepancy, change: dict[str, Any], words: str
    ) -> None:
        Call.objects.filter(pk=str(told.subject)).update(**change)
        self.refuse(told, words)

    def test_is_refused_of_more_than_is_left(self, captured: Checkout, told: Discrepancy) -> None:
        booking.book_outside_refund(told.pk, note=NOTE, cause=CAUSE)
        give_back_at_the_bank(captured, 7000)
        Call.objects.filter(amount=7000).update(amount=7001)
        discrepancies.report(
            "outside_refund", Call.objects.get(amount=7001).pk, payment=str(captured.payment_id)
        )
        self.refuse(Discrepancy.objects.get(closed_at=None), "more than we know")

    def test_is_refused_of_what_the_books_do_not_have(self, told: Discrepancy) -> None:
        Discrepancy.objects.filter(pk=told.pk).update(subject=told.pk)
        self.refuse(told, "do not have it")

    def test_is_refused_of_our_own(self, captured: Checkout) -> None:
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        mates.pump(captured.pk, rounds=2)
        ours = Operation.objects.get(kind="refund").pk
        discrepancies.report("outside_refund", ours, payment=str(captured.payment_id))
        self.refuse(Discrepancy.objects.get(), "an operation of ours")

    def test_is_refused_of_no_payment_of_ours(self, told: Discrepancy) -> None:
        Discrepancy.objects.filter(pk=told.pk).update(facts={})
        self.refuse(told, "no payment of ours")

    def test_asks_of_its_payment_alone_however_old_it_is(
        self, told: Discrepancy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A provider's books of all may go back a month, and are long."""
        Discrepancy.objects.filter(pk=told.pk).update(created_at=clock.now() + timedelta(days=60))
        monkeypatch.delattr(SandboxProvider, "records")
        booking.book_outside_refund(told.pk, note=NOTE, cause=CAUSE)
        assert Booking.objects.get().reference == told.subject

    def test_is_refused_of_another_discrepancy(self, captured: Checkout) -> None:
        discrepancies.report("another_amount", captured.pk)
        self.refuse(Discrepancy.objects.get(), "Only an open discrepancy")

    def refuse(self, told: Discrepancy, words: str) -> None:
        refuses(lambda row: booking.book_outside_refund(row.pk, note=NOTE, cause=CAUSE), told, words)


@pytest.mark.rule("refund.outside")
@pytest.mark.usefixtures("posted")
class TestBookingWhatGivesAgainWhatCameBack:
    def test_takes_the_place_of_the_refund(self, refunded: Checkout) -> None:
        come_back()
        self.give_again(refunded, 9000)
        self.book()
        assert balances(refunded) == {} and Refund.objects.get().status == "settled"
        booked = Booking.objects.get()
        assert (booked.account, booked.operation) == ("returned", returned(refunded))
        assert not Discrepancy.objects.filter(closed_at=None).exists()
        refuses(send, returned(refunded), "got it since")

    def test_of_a_reimbursement_leaves_a_later_refund_whole(self, reimbursed: Checkout) -> None:
        self.give_again(reimbursed, 3000)
        self.book()
        assert balances(reimbursed) == {"provider": 9000, "merchant": -9000}
        refuses(send, returned(reimbursed), "got it since")
        refunds.accept(reimbursed.merchant, reimbursed.pk, ref="r-1", cause=CAUSE)
        settle(reimbursed)
        assert (reimbursed.status, balances(reimbursed)) == ("refunded", {})
        assert sorted(Charge.objects.values_list("refunded_amount", flat=True)) == [3000, 9000]

    def test_is_not_sent_again_though_that_is_planned(self, reimbursed: Checkout) -> None:
        send(returned(reimbursed))
        self.give_again(reimbursed, 3000)
        self.book()
        settle(reimbursed)
        assert balances(reimbursed) == {"provider": 9000, "merchant": -9000}
        assert Charge.objects.get(last4=RETURNS[-4:]).refunded_amount == 3000

    def test_is_refused_while_it_is_sent_again(self, reimbursed: Checkout) -> None:
        send(returned(reimbursed))
        mates.pump(reimbursed.pk)
        assert Operation.objects.filter(kind="refund", account="returned", state="pending").exists()
        self.give_again(reimbursed, 3000, is_settled=False)
        told = Call.objects.get(reference=None)
        Call.objects.filter(pk=told.pk).update(verdict="succeeded")
        reconciliation.compare(reimbursed.created_at)
        refuses(self.book_row, Discrepancy.objects.get(kind="outside_refund"), "under way")

    def test_is_refused_of_another_amount(self, reimbursed: Checkout) -> None:
        self.give_again(reimbursed, 2000)
        told = Discrepancy.objects.get(kind="outside_refund")
        refuses(self.book_row, told, "£30.00 that came back is owed")

    def test_is_the_merchants_if_it_was_told_days_before_anything_came_back(
        self, reimbursed: Checkout
    ) -> None:
        self.give_again(reimbursed, 3000)
        Discrepancy.objects.filter(kind="outside_refund").update(created_at=clock.now() - timedelta(days=2))
        self.book()
        assert Booking.objects.get().account == "merchant" and balances(reimbursed)["returned"] == -3000
        assert Discrepancy.objects.get(closed_at=None).kind == "refund_returned"
        send(returned(reimbursed))

    @pytest.fixture
    def reimbursed(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> Checkout:
        """Finn has paid £30.00 of £90.00, and what Lea had got of it came back."""
        reimburse(unpaid, pay)
        come_back()
        assert balances(unpaid)["returned"] == -3000
        return unpaid

    def give_again(self, checkout: Checkout, amount: int, *, is_settled: bool = True) -> None:
        """Let somebody give it to the card again in the provider's dashboard, for good."""
        assert checkout.payment_id is not None
        bank.act_in_dashboard(kind="refund", payment=checkout.payment_id, amount=amount)
        if is_settled:
            Call.objects.filter(verdict="pending").update(settles_at=clock.now())
            settling.settle_due()
            Call.objects.filter(kind="refund").update(returns_at=None)
            reconciliation.compare(checkout.created_at)

    def book(self) -> None:
        self.book_row(Discrepancy.objects.get(kind="outside_refund", closed_at=None))

    def book_row(self, told: Discrepancy) -> None:
        booking.book_outside_refund(told.pk, note=NOTE, cause=CAUSE)
