"""What operators do about money that is stuck: only what the provider's word allows, once, and the ledger is proven."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F

from checkout import finishing, refunds, tasks, transitions
from checkout.models import Checkout, PaymentRequest
from checkout.proof import proving
from checkout.remedies import asking, booking, closing, giving_up, sending
from checkout.remedies.asking import NotAllowed
from payments import discrepancies, ledger, operations, planning, reconciliation
from payments.models import Booking, Discrepancy, Operation, Payment
from payments.outside import inquiries
from payments.provider import CARD_CANNOT_TAKE_IT, CardUse
from payments.providers.sandbox import bank, disputing, fault_injection
from payments.providers.sandbox.models import Call, CardToken, Charge
from portal.models import Role
from tests import mates
from tests.factories import CAUSE, CustomerFactory, make_late
from tests.portal import stage
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db
ACCOUNT_CLOSED = "4000000000005126"
CHALLENGED = "4000002500003155"
NOTE = "Paid by bank transfer on Monday"
LONG_AGO = "2020-01-01T00:00Z"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "LOOK_UP_SECONDS", 0.02)


@pytest.fixture(autouse=True)
def _proven(db: None) -> Iterator[None]:
    """Whatever an operator does, the ledger is proven."""
    yield
    assert proving.breaches() == []


@pytest.fixture
def share(unpaid: Checkout, pay: Callable[..., Checkout]) -> PaymentRequest:
    """Finn has paid £20.00 of £90.00 by a card whose account is closed since, and Lea has got it back."""
    (share,) = mates.split(unpaid, 2000)
    pay(unpaid)
    transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    mates.pay(share, ACCOUNT_CLOSED)
    assert mates.settled(share) == "reimbursed"
    return share


@pytest.fixture
def stuck(unpaid: Checkout, share: PaymentRequest) -> Operation:
    """The part of a refund that Finn's card can't take; Lea's has been given back."""
    refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
    mates.pump(unpaid.pk, rounds=2)
    return Operation.objects.select_related("payment").get(
        payment__subject=share.pk, reason="card_account_closed"
    )


@pytest.fixture
def owed(unpaid: Checkout, pay: Callable[..., Checkout]) -> Operation:
    """What Lea's card, whose account is closed, can't take of Finn's £20.00."""
    (share,) = mates.split(unpaid, 2000)
    pay(unpaid, ACCOUNT_CLOSED)
    transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    mates.pay(share)
    mates.pump(unpaid.pk, rounds=3)
    return Operation.objects.select_related("payment").get(share_uuid=share.pk, reason="card_account_closed")


@pytest.fixture
def void(held: Checkout) -> Operation:
    """A release that the provider has refused."""
    fault_injection.set_fault(verb="void", mode="void_refused", times=1)
    transitions.cancel(held.merchant, held.pk, cause=CAUSE)
    mates.pump(held.pk)
    return Operation.objects.select_related("payment").get(kind="void", state="failed")


@pytest.fixture
def doubt(unpaid: Checkout, pay: Callable[..., Checkout]) -> Callable[..., Operation]:
    """An authorization that got no clear answer, an hour ago."""

    def brought(mode: str, card: str = "4242424242424242") -> Operation:
        fault_injection.set_fault(verb="authorize", mode=mode, times=1)
        pay(unpaid, card)
        Operation.objects.update(created_at=F("created_at") - timedelta(minutes=5))
        return Operation.objects.select_related("payment").get()

    return brought


def close(part: Operation) -> None:
    closing.close_as_settled_otherwise(part.pk, note=NOTE, cause=CAUSE)


def send(operation: Operation) -> None:
    sending.send_again(operation.pk, cause=CAUSE)


def give_up(operation: Operation) -> None:
    giving_up.give_up(operation.pk, note=NOTE, cause=CAUSE)


def refuses(remedy: Callable[[Any], object], row: Any, words: str) -> None:
    """Check that a remedy is not allowed, says why, and moves nothing."""
    bookings = Booking.objects.count()
    with nothing_moves(), pytest.raises(NotAllowed, match=words):
        remedy(row)
    assert Booking.objects.count() == bookings


def said(operation: Operation, **answer: Any) -> None:
    """Let the bank's books say something else of an operation."""
    Call.objects.filter(reference=operation.pk).update(**answer)


def give_back_at_the_bank(checkout: Checkout, amount: int) -> None:
    """Let somebody refund a part in the provider's dashboard, and let it be settled."""
    assert checkout.payment_id is not None
    bank.act_in_dashboard(kind="refund", payment=checkout.payment_id, amount=amount)
    bank.look_up(key=checkout.pk, payment=checkout.payment_id, kind="refund")


def look_into_disputes(operation: Operation) -> None:
    inquiries.open_about([operation.payment_id])
    tasks.answer_inquiries()


class TestClosingAPart:
    def test_lets_the_refund_go_on_to_its_end(self, unpaid: Checkout, stuck: Operation) -> None:
        close(stuck)
        unpaid.refresh_from_db()
        assert (unpaid.status, unpaid.refunded_amount) == ("refunded", 9000)
        assert unpaid.refunds.get().status == "settled"
        booked = Booking.objects.get()
        assert (booked.kind, booked.amount, booked.account) == ("settled_otherwise", 2000, "merchant")
        assert (booked.operation, booked.note, booked.actor) == (stuck, NOTE, CAUSE.actor)
        assert set(ledger.balances(unpaid.pk).values()) == {0}
        assert "outside" in ledger.balances(unpaid.pk)
        found = Discrepancy.objects.get(kind="refund_part_failed")
        assert found.closed_at is not None and found.note == NOTE
        assert unpaid.payment_requests.get().status == "refunded"

    def test_ends_its_retries(self, unpaid: Checkout, stuck: Operation) -> None:
        assert planning.parts_like(stuck).filter(state="planned").exists()
        close(stuck)
        mates.pump(unpaid.pk, rounds=2)
        assert not Operation.objects.filter(ended_at=None).exists()
        assert Charge.objects.get(token__last4="5126").refunded_amount == 0

    def test_lets_the_others_follow(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        (share,) = mates.split(unpaid, 2000)
        pay(unpaid)
        transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
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
            ({"reason": "try_again_later"}, r"it failed \(try_again_later\)"),
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
        transitions.capture(paid.merchant, paid.pk, cause=CAUSE)
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
        assert ledger.balances(unpaid.pk) == {"provider": 9000, "lead": 0, "merchant": -9000, "outside": 0}
        assert Discrepancy.objects.get().closed_at is not None
        assert not Operation.objects.filter(ended_at=None).exists()
        refuses(close, owed, "before|newest")

    def test_is_kept_for_ever(self, stuck: Operation) -> None:
        close(stuck)
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            Booking.objects.update(note="Another")

    def test_knows_what_the_bank_says_of_a_closed_account(self, stuck: Operation) -> None:
        assert stuck.reason in CARD_CANNOT_TAKE_IT


class TestSendingAgain:
    @pytest.mark.rule("money.settled")
    def test_a_refund_that_failed_goes_out_at_once_under_a_new_key(
        self, unpaid: Checkout, stuck: Operation
    ) -> None:
        planning.parts_like(stuck).filter(state="planned").update(
            state="failed", ended_at=stuck.ended_at, created_at=stuck.created_at
        )
        send(stuck)
        (new,) = Operation.objects.filter(ended_at=None)
        assert new.pk != stuck.pk and (new.payment, new.amount, new.account) == (
            stuck.payment,
            2000,
            "merchant",
        )
        CardToken.objects.filter(last4="5126").update(last4="4242")
        mates.pump(unpaid.pk, rounds=2)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded"
        assert Discrepancy.objects.get(kind="refund_part_failed").note == "The card has got it."

    def test_twice_plans_once(self, stuck: Operation) -> None:
        send(stuck)
        send(stuck)
        (planned,) = Operation.objects.filter(ended_at=None)
        assert planned.state == "planned" and planned.next_attempt_at == planned.created_at

    def test_a_void_that_was_refused(self, held: Checkout, void: Operation) -> None:
        Operation.objects.filter(kind="void", ended_at=None).update(state="failed", ended_at=void.ended_at)
        send(void)
        mates.pump(held.pk)
        assert Charge.objects.get().state == "voided"
        refuses(send, void, "it succeeded")

    def test_of_what_never_arrived_keeps_the_key_that_the_provider_knows(self, unpaid: Checkout) -> None:
        operation = self._doubtful_refund(unpaid)
        Operation.objects.filter(pk=operation.pk).update(next_attempt_at="2100-01-01T00:00Z")
        send(operation)
        finishing.finish_all_of(unpaid.pk)
        assert Call.objects.filter(kind="refund").values_list("reference", flat=True).get() == operation.pk

    def test_of_what_never_arrived_gets_a_new_key_when_the_old_is_forgotten(self, unpaid: Checkout) -> None:
        operation = self._doubtful_refund(unpaid)
        days = timedelta(days=3)
        Operation.objects.filter(pk=operation.pk).update(created_at=F("created_at") - days, attempts=5)
        send(operation)
        operation.refresh_from_db()
        assert operation.reason == "new_key"
        (new,) = Operation.objects.filter(kind="refund", ended_at=None)
        mates.pump(unpaid.pk)
        assert Call.objects.filter(kind="refund").values_list("reference", flat=True).get() == new.pk

    def test_of_a_doubt_that_the_provider_knows_as_failed(self, stuck: Operation, unpaid: Checkout) -> None:
        mates.pump(unpaid.pk)
        again = planning.parts_like(stuck).exclude(pk=stuck.pk).get(state="pending")
        Operation.objects.filter(pk=again.pk).update(state="unknown")
        send(again)
        again.refresh_from_db()
        assert again.state == "failed"
        (planned,) = Operation.objects.filter(ended_at=None)
        assert planned.next_attempt_at == planned.created_at

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ({"verdict": "succeeded", "reason": ""}, "it succeeded"),
            ({"verdict": "pending", "reason": "", "settles_at": None}, "accepted, and not settled"),
        ],
    )
    def test_is_refused_when_the_provider_says_otherwise(
        self, stuck: Operation, answer: dict[str, Any], words: str
    ) -> None:
        said(stuck, **answer)
        refuses(send, stuck, words)

    @pytest.mark.parametrize(
        ("mode", "words"), [("down", "nothing clear"), ("not_vouched", "does not vouch")]
    )
    def test_is_refused_when_the_provider_does_not_vouch(
        self, unpaid: Checkout, mode: str, words: str
    ) -> None:
        operation = self._doubtful_refund(unpaid)
        fault_injection.set_fault(verb="look_up", mode=mode, times=1)
        refuses(send, operation, words)

    def test_is_refused_of_what_has_ended_or_waits(self, unpaid: Checkout, stuck: Operation) -> None:
        refuses(
            send, Operation.objects.get(kind="authorize", payment=stuck.payment), "Only a refund or a void"
        )
        refuses(
            send,
            Operation.objects.get(kind="refund", payment__subject=unpaid.pk, share_uuid=None),
            "succeeded",
        )
        refuses(send, Operation.objects.get(state="planned"), "has not been sent")
        close(stuck)
        refuses(send, stuck, "settled otherwise before")

    def _doubtful_refund(self, unpaid: Checkout) -> Operation:
        token = bank.tokenise(subject=unpaid.pk, number="4242424242424242")
        lead = CustomerFactory.create()
        transitions.authorize(unpaid.pk, card=CardUse(token), lead=lead, cause=CAUSE)
        transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        fault_injection.set_fault(verb="refund", mode="down", times=1)
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk)
        return Operation.objects.select_related("payment").get(kind="refund", state="unknown")


class TestGivingUp:
    def test_an_authorization_that_never_arrived(
        self, doubt: Callable[..., Operation], unpaid: Checkout
    ) -> None:
        operation = doubt("down")
        discrepancies.report_operation(operation, "in_doubt_for_a_day")
        give_up(operation)
        operation.refresh_from_db()
        assert (operation.state, operation.reason) == ("failed", "given_up_by_operator")
        assert (
            Payment.objects.get().status == "declined" and not Operation.objects.filter(kind="void").exists()
        )
        found = Discrepancy.objects.get()
        assert found.closed_at is not None and found.note == NOTE
        refuses(give_up, operation, "not in doubt")

    def test_an_authorization_of_which_nothing_is_said_once_it_is_released(
        self, doubt: Callable[..., Operation]
    ) -> None:
        operation = doubt("done_then_reset")
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        give_up(operation)
        operation.refresh_from_db()
        assert operation.reason == "given_up_by_operator"
        assert (Charge.objects.get().state, Payment.objects.get().status) == ("voided", "voided")
        assert Operation.objects.get(kind="void").state == "succeeded"

    def test_is_refused_when_nothing_could_be_released(self, doubt: Callable[..., Operation]) -> None:
        operation = doubt("done_then_reset")
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        fault_injection.set_fault(verb="void", mode="down", times=1)
        with pytest.raises(NotAllowed, match="only when a void has succeeded"):
            give_up(operation)
        operation.refresh_from_db()
        assert (operation.state, Charge.objects.get().state) == ("unknown", "held")
        mates.pump(operation.payment.checkout_uuid, rounds=2)
        assert Charge.objects.get().state == "voided", "nobody waits for it: what is found is released"

    @pytest.mark.rule("operator.asks_first")
    def test_is_refused_when_the_provider_knows_it(self, doubt: Callable[..., Operation]) -> None:
        refuses(give_up, doubt("done_then_reset"), "it succeeded")

    def test_is_refused_while_the_payer_waits(self, doubt: Callable[..., Operation]) -> None:
        operation = doubt("down")
        Operation.objects.update(created_at=F("created_at") + timedelta(minutes=4))
        refuses(give_up, operation, "payer still waits")

    def test_a_mates_authorization_frees_the_share(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 2000)
        pay(unpaid)
        transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        fault_injection.set_fault(verb="authorize", mode="down", times=1)
        mates.pay(share)
        operation = Operation.objects.get(kind="authorize", payment__subject=share.pk)
        Operation.objects.filter(pk=operation.pk).update(created_at=F("created_at") - timedelta(minutes=5))
        give_up(operation)
        share.refresh_from_db()
        assert share.status == "open"

    def test_a_capture_that_never_arrived_lets_the_hold_lapse(self, held: Checkout) -> None:
        operation = self._doubtful_capture(held)
        make_late(held)
        give_up(operation)
        held.refresh_from_db()
        assert (held.status, held.void_reason) == ("voided", "auth_expired")
        mates.pump(held.pk)
        assert Charge.objects.get().state == "voided"

    def test_a_capture_is_refused_while_it_is_wanted(self, held: Checkout) -> None:
        refuses(give_up, self._doubtful_capture(held), "still to be taken")

    @pytest.mark.parametrize(
        ("mode", "words"), [("down", "nothing clear"), ("not_vouched", "does not vouch")]
    )
    def test_a_capture_is_refused_when_the_provider_does_not_vouch(
        self, held: Checkout, mode: str, words: str
    ) -> None:
        operation = self._doubtful_capture(held)
        make_late(held)
        fault_injection.set_fault(verb="look_up", mode=mode, times=1)
        refuses(give_up, operation, words)

    def test_is_refused_of_refunds_and_voids(self, stuck: Operation) -> None:
        refuses(give_up, stuck, "Only an authorization or a capture")

    def _doubtful_capture(self, held: Checkout) -> Operation:
        fault_injection.set_fault(verb="capture", mode="down", times=1)
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        with pytest.raises(transitions.OutcomeUnknown):
            transitions.capture(held.merchant, held.pk, cause=CAUSE)
        fault_injection.set_fault(verb="look_up", mode="down", times=0)
        Operation.objects.filter(kind="capture").update(lease_until=None)
        return Operation.objects.select_related("payment").get(kind="capture")


class TestBookingARefund:
    @pytest.fixture
    def told(self, captured: Checkout) -> Discrepancy:
        """Somebody has given £20.00 back in the provider's dashboard, and the night's look has found it."""
        give_back_at_the_bank(captured, 2000)
        reconciliation.compare(captured.created_at)
        return Discrepancy.objects.get(kind="outside_refund")

    def test_takes_it_from_what_the_merchant_is_owed(self, captured: Checkout, told: Discrepancy) -> None:
        booking.book_outside_refund(told.pk, note=NOTE, cause=CAUSE)
        assert ledger.balances(captured.pk) == {"provider": 7000, "merchant": -7000, "outside": 0}
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
        assert set(ledger.balances(captured.pk).values()) == {0}
        assert (Charge.objects.get().refunded_amount, Payment.objects.get().status) == (9000, "refunded")

    @pytest.mark.rule("refund.outside")
    def test_leaves_the_rest_of_a_split_to_it_too(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 3000)
        transitions.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        mates.pay(share)
        assert mates.settled(share) == "reimbursed"
        unpaid.refresh_from_db()
        give_back_at_the_bank(unpaid, 2000)
        reconciliation.compare(unpaid.created_at)
        booking.book_outside_refund(Discrepancy.objects.get().pk, note=NOTE, cause=CAUSE)
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk, rounds=2)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded" and set(ledger.balances(unpaid.pk).values()) == {0}
        assert sorted(Charge.objects.values_list("refunded_amount", flat=True)) == [3000, 9000]

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
            ({"kind": "void"}, "Only a refund"),
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
        discrepancies.report("outside_refund", Call.objects.get(amount=7001).pk)
        self.refuse(Discrepancy.objects.get(closed_at=None), "more than we know")

    def test_is_refused_of_what_the_books_do_not_have(self, told: Discrepancy) -> None:
        Discrepancy.objects.filter(pk=told.pk).update(subject=told.pk)
        self.refuse(told, "do not have it")

    def test_is_refused_of_our_own(self, captured: Checkout) -> None:
        discrepancies.report("outside_refund", Operation.objects.get(kind="capture").pk)
        self.refuse(Discrepancy.objects.get(), "Only a refund")

    def test_is_refused_of_another_discrepancy(self, captured: Checkout) -> None:
        discrepancies.report("another_amount", captured.pk)
        self.refuse(Discrepancy.objects.get(), "Only an open discrepancy")

    def refuse(self, told: Discrepancy, words: str) -> None:
        refuses(lambda row: booking.book_outside_refund(row.pk, note=NOTE, cause=CAUSE), told, words)
