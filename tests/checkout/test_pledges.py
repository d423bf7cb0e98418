"""Pledges: a mate's card is held before the lead pays, and is charged once after the merchant's capture."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from checkout import authorizations, cancellations, captures, expiry, mate_shares, pledges, refunds, tasks
from checkout.group import pledging, share_claims
from checkout.mate_shares import OwnShare, ShareNotOpen
from checkout.models import Checkout, Customer, LeadNotification, PaymentRequest
from checkout.proof import ledger_proof
from checkout.settling import FINISH_OPERATIONS
from checkout.split.share_rows import Share
from checkout.states import OperationInProgress
from config.lib import clock
from payments import operator_stops
from payments.models import Operation, Payment
from payments.provider import CardUse
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Charge
from tests import factories, mates
from tests.factories import CAUSE, CustomerFactory

pytestmark = pytest.mark.django_db
LEADS_CARD = "4242424242424242"
Change = Callable[["Pledged"], Any]


class Pledged:
    """An unpaid order of £90.00. The lead asks Finn and Amy for £20.00 each, and Finn has pledged."""

    def __init__(self, order: Checkout) -> None:
        self.order, self.lead, self.mate = order, CustomerFactory.create(), CustomerFactory.create()
        mate_shares.make_lead(order.pk, self.lead)
        self.split(Share(2000, "Finn"), Share(2000, "Amy"))
        self.finn, self.amy = order.payment_requests.order_by("position")
        self.pledge(self.finn)

    def split(self, *shares: Share) -> None:
        mate_shares.split(self.order.pk, shares, lead=self.lead.pk, everyone_first=True)

    def pledge(self, share: PaymentRequest, card: str = mates.FINNS) -> authorizations.PaymentResult:
        return mates.pay(share, card, self.mate)

    def hold(self) -> Checkout:
        card = CardUse(bank.tokenise(subject=self.order.pk, number=LEADS_CARD))
        authorizations.authorize(self.order.pk, card=card, lead=self.lead, cause=CAUSE)
        return self.read()

    def capture(self) -> Checkout:
        self.hold()
        return captures.capture(self.order.merchant, self.order.pk, cause=CAUSE)

    def read(self) -> Checkout:
        self.order.refresh_from_db()
        return self.order

    def status(self, share: PaymentRequest) -> str:
        return PaymentRequest.every.get(pk=share.pk).status

    def held_for(self, share: PaymentRequest) -> list[str]:
        """Return the states of the share's charges at the bank."""
        payments = list(Payment.objects.filter(subject=share.pk).values_list("pk", flat=True))
        return list(
            Charge.objects.filter(payment__in=payments).order_by("pk").values_list("state", flat=True)
        )


@pytest.fixture
def pledged(unpaid: Checkout) -> Pledged:
    made = Pledged(unpaid)
    assert made.status(made.finn) == "pledged" and made.held_for(made.finn) == ["held"]
    return made


@pytest.fixture(autouse=True)
def _proven(db: None) -> Any:
    yield
    assert ledger_proof.find_breaches() == []


@pytest.mark.rule("pledge.held")
class TestPledging:
    @pytest.mark.rule("pledge.choice")
    def test_needs_the_choice_of_the_lead(self, unpaid: Checkout) -> None:
        lead = CustomerFactory.create()
        mate_shares.make_lead(unpaid.pk, lead)
        mate_shares.split(unpaid.pk, [Share(2000)], lead=lead.pk)
        with pytest.raises(ShareNotOpen):
            mates.pay(unpaid.payment_requests.get())
        assert not Payment.objects.exists()

    def test_a_declined_card_leaves_the_share_open(self, pledged: Pledged) -> None:
        pledged.pledge(pledged.amy, "4000000000000002")
        assert pledged.status(pledged.amy) == "open"

    def test_a_pledged_share_takes_no_second_card(self, pledged: Pledged) -> None:
        with pytest.raises(ShareNotOpen, match="pledged"):
            pledged.pledge(pledged.finn)

    def test_the_links_end_with_the_time_to_pay(self, pledged: Pledged) -> None:
        assert pledged.finn.expires_at == pledged.order.payable_until
        pledged.read()
        factories.make_late(pledged.order)
        with pytest.raises(ShareNotOpen):
            pledged.pledge(pledged.amy)

    @pytest.mark.rule("pledge.lead")
    def test_the_lead_cannot_pledge(self, pledged: Pledged) -> None:
        with pytest.raises(OwnShare):
            mates.pay(pledged.amy, mate=pledged.lead)

    def test_a_mate_can_take_a_share_at_the_group_link(self, pledged: Pledged) -> None:
        share_claims.claim_share(pledged.amy.pk, claim="a" * 64)
        with pytest.raises(ShareNotOpen):
            pledged.pledge(pledged.amy)

    @pytest.mark.rule("pledge.time")
    def test_cannot_begin_shortly_before_the_order_expires(self, pledged: Pledged) -> None:
        until = clock.now() + pledges.MIN_TIME_LEFT - timedelta(seconds=5)
        Checkout.objects.filter(pk=pledged.order.pk).update(payable_until=until)
        with pytest.raises(mate_shares.TooLateToCollect):
            pledged.split(Share(1000, "Finn"))
        assert pledged.status(pledged.finn) == "pledged"

    @pytest.mark.rule("pledge.time")
    def test_can_begin_until_ten_minutes_before_the_order_expires(self) -> None:
        now = clock.now()
        order = Checkout(status="created", payable_until=now + timedelta(minutes=10))
        assert pledges.can_collect(order, now)
        assert not pledges.can_collect(order, now + timedelta(microseconds=1))
        assert not pledges.can_collect(Checkout(status="authorized", payable_until=order.payable_until), now)

    def test_is_possible_until_the_capture_unless_the_merchant_is_stopped(self, unpaid: Checkout) -> None:
        assert pledges.is_waiting(unpaid)
        assert not pledges.is_waiting(Checkout(merchant=unpaid.merchant, status="captured"))
        factories.stop(unpaid.merchant)
        assert not pledges.is_waiting(unpaid)


@pytest.mark.rule("pledge.captured")
class TestAfterTheCapture:
    def test_only_a_payment_that_began_before_it_was_pledged(self) -> None:
        now = clock.now()
        assert pledges.was_pledged(Checkout(captured_at=now), Payment(created_at=now - timedelta.resolution))
        assert not pledges.was_pledged(Checkout(captured_at=now), Payment(created_at=now))
        assert not pledges.was_pledged(Checkout(), Payment(created_at=now))

    def test_each_pledge_is_captured_once_and_reimbursed(self, pledged: Pledged) -> None:
        order = pledged.capture()
        assert pledged.status(pledged.finn) == "paying"
        assert mates.settled(pledged.finn) == "reimbursed"
        assert Operation.objects.filter(payment__subject=pledged.finn.pk, kind="capture").count() == 1
        assert mates.borne(order) == {"4242": 7000, "4444": 2000}
        pledged.amy.refresh_from_db()
        assert pledged.amy.status == "open"
        assert pledged.amy.expires_at and pledged.amy.expires_at > order.payable_until

    def test_a_capture_that_fails_opens_the_share_and_notifies_the_lead(self, pledged: Pledged) -> None:
        pledged.capture()
        Charge.objects.filter(last4="4444").update(state="voided")  # the bank releases the hold
        assert mates.settled(pledged.finn) == "open"
        assert LeadNotification.objects.get(kind="not_taken").share_uuid == pledged.finn.pk
        assert pledged.held_for(pledged.finn) == ["voided"]

    def test_a_refund_waits_for_a_capture_that_was_sent(self, pledged: Pledged) -> None:
        order = pledged.capture()
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        mates.settled(pledged.finn)
        assert set(mates.borne(order).values()) <= {0} and pledged.read().status == "refunded"


@pytest.mark.rule("pledge.lead")
class TestTheLeadsCard:
    def test_a_pledge_with_the_leads_card_ends_once_it_is_known(self, pledged: Pledged) -> None:
        pledged.pledge(pledged.amy, LEADS_CARD)
        assert pledged.status(pledged.amy) == "pledged"
        pledged.hold()
        assert (pledged.status(pledged.amy), pledged.status(pledged.finn)) == ("open", "pledged")
        assert mates.settled(pledged.amy) == "open" and pledged.held_for(pledged.amy) == ["voided"]


ENDS: dict[str, tuple[Change, str]] = {
    "the mate withdraws": (lambda it: pledging.withdraw(it.finn.pk, mate=it.mate.pk), "open"),
    "the lead keeps the share": (lambda it: mate_shares.cancel(it.finn.pk), "cancelled"),
    "the lead changes": (
        lambda it: mate_shares.make_lead(it.order.pk, CustomerFactory.create()),
        "cancelled",
    ),
    "the amount changes": (lambda it: it.split(Share(1500, "Finn"), Share(2000, "Amy")), "open"),
    "another mate is asked for another amount": (
        lambda it: it.split(Share(2100, "Bob"), Share(2000, "Amy")),
        "cancelled",
    ),
    "a mate with another number is asked": (
        lambda it: it.split(Share(2000, "Bob", phone="+447700900999"), Share(2000, "Amy")),
        "cancelled",
    ),
    "the mate is left out": (lambda it: it.split(), "cancelled"),
    "the merchant cancels": (
        lambda it: cancellations.cancel(it.order.merchant, it.order.pk, cause=CAUSE),
        "cancelled",
    ),
    "the merchant is suspended": (
        lambda it: (operator_stops.suspend(it.order.merchant, reason="test"), tasks.expire_due()),
        "open",
    ),
    "the mate is erased": (lambda it: pledging.end_of_mate(it.mate.pk), "open"),
}


def expire(it: Pledged) -> None:
    factories.make_late(it.read())
    expiry.expire_one_if_due(it.order.pk)
    assert it.read().status == "expired"


def lapse(it: Pledged) -> None:
    factories.make_late(it.hold())
    expiry.expire_due(it.order.status, 10)  # type: ignore[arg-type]
    assert it.read().status == "voided"


ENDS |= {"the order expires": (expire, "cancelled"), "the hold lapses": (lapse, "cancelled")}


@pytest.mark.rule("pledge.ends")
class TestTheEnd:
    @pytest.mark.parametrize("name", ENDS)
    def test_releases_the_hold_at_once(self, pledged: Pledged, name: str) -> None:
        change, status = ENDS[name]
        change(pledged)
        assert pledged.status(pledged.finn) == status
        assert Operation.objects.filter(payment__subject=pledged.finn.pk, kind="void").exists()
        mates.pump(pledged.order.pk, 3)
        assert pledged.held_for(pledged.finn) == ["voided"]

    @pytest.mark.rule("pledge.split_changes")
    def test_a_corrected_name_keeps_the_pledge(self, pledged: Pledged) -> None:
        pledged.split(Share(2000, "Phin"), Share(2000, "Amy"))
        assert pledged.status(pledged.finn) == "pledged"
        assert PaymentRequest.objects.get(pk=pledged.finn.pk).name == "Phin"
        assert not Operation.objects.filter(payment__subject=pledged.finn.pk, kind="void").exists()

    @pytest.mark.rule("pledge.split_changes")
    def test_a_share_that_stays_the_same_keeps_its_pledge(self, pledged: Pledged) -> None:
        pledged.split(Share(2000, "Finn"), Share(2500, "Amy"), Share(1000, "Bob"))
        assert pledged.status(pledged.finn) == "pledged"
        rows = pledged.order.payment_requests.order_by("position")
        assert [(row.amount, row.status) for row in rows] == [
            (2000, "pledged"),
            (2500, "open"),
            (1000, "open"),
        ]
        assert pledged.read().people == 4 and pledged.amy in rows, "Amy's link asks for the new amount"

    @pytest.mark.rule("pledge.choice")
    def test_a_split_without_the_choice_keeps_the_links_open(self, pledged: Pledged) -> None:
        shares = [Share(2000, "Finn"), Share(2000, "Amy"), Share(1000, "Bob")]
        mate_shares.split(pledged.order.pk, shares, lead=pledged.lead.pk)
        statuses = pledged.order.payment_requests.order_by("position").values_list("status", flat=True)
        assert list(statuses) == ["pledged", "open", "open"]

    def test_a_card_that_waits_for_confirmation_is_given_up(self, pledged: Pledged) -> None:
        assert pledged.pledge(pledged.amy, mates.CHALLENGED).action_url
        cancellations.cancel(pledged.order.merchant, pledged.order.pk, cause=CAUSE)
        assert pledged.status(pledged.amy) == "paying"
        operation = Operation.objects.get(payment__subject=pledged.amy.pk)
        bank.answer_challenge(key=operation.pk, is_confirmed=True)
        assert mates.settled(pledged.amy) == "cancelled" and pledged.held_for(pledged.amy) == ["voided"]

    def test_a_new_split_gives_up_a_card_that_waits_for_confirmation(self, pledged: Pledged) -> None:
        pledged.pledge(pledged.amy, mates.CHALLENGED)
        pledged.split(Share(2000, "Finn"))
        assert pledged.status(pledged.amy) == "cancelled"
        operation = Operation.objects.get(payment__subject=pledged.amy.pk)
        bank.answer_challenge(key=operation.pk, is_confirmed=True)
        mates.pump(pledged.order.pk, 3)
        assert pledged.status(pledged.amy) == "cancelled" and pledged.held_for(pledged.amy) == ["voided"]


@pytest.mark.rule("pledge.withdraw")
class TestWithdrawing:
    def test_is_refused_while_the_leads_card_is_held(self, pledged: Pledged) -> None:
        pledged.hold()
        with pytest.raises(OperationInProgress):
            pledging.withdraw(pledged.finn.pk, mate=pledged.mate.pk)

    def test_is_possible_again_after_the_leads_card_was_declined(self, pledged: Pledged) -> None:
        card = CardUse(bank.tokenise(subject=pledged.order.pk, number="4000000000000002"))
        authorizations.authorize(pledged.order.pk, card=card, lead=pledged.lead, cause=CAUSE)
        pledging.withdraw(pledged.finn.pk, mate=pledged.mate.pk)
        pledging.withdraw(pledged.finn.pk, mate=pledged.mate.pk)  # a second tap
        assert pledged.status(pledged.finn) == "open"

    def test_keeps_the_name_that_the_mate_gave_until_another_person_takes_the_share(
        self, pledged: Pledged
    ) -> None:
        PaymentRequest.objects.filter(pk=pledged.finn.pk).update(claim_name="Phin")
        pledging.withdraw(pledged.finn.pk, mate=pledged.mate.pk)
        pledged.finn.refresh_from_db()
        assert pledged.finn.claim_name == "Phin"

    def test_ends_the_hold_of_this_mate(self, pledged: Pledged) -> None:
        finn, mate = pledged.finn, pledged.mate.pk
        payment = Payment.objects.get(subject=finn.pk)
        finn.refresh_from_db()
        assert pledges.last_payment(finn, mate) == payment
        assert pledges.ended_hold(finn, mate) is pledges.released_hold(finn, mate) is None
        pledging.withdraw(finn.pk, mate=mate)
        finn.refresh_from_db()
        assert pledges.ended_hold(finn, mate) == pledges.released_hold(finn, mate) == payment
        assert pledges.ended_hold(finn, pledged.lead.pk) is None

    def test_wakes_the_pump_that_releases_the_hold(
        self, pledged: Pledged, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        with django_capture_on_commit_callbacks() as callbacks:
            pledging.withdraw(pledged.finn.pk, mate=pledged.mate.pk)
        woken = [callback.args for callback in callbacks if isinstance(callback, partial)]
        assert (FINISH_OPERATIONS,) in woken

    def test_is_only_for_the_mate(self, pledged: Pledged) -> None:
        with pytest.raises(ShareNotOpen):
            pledging.withdraw(pledged.finn.pk, mate=CustomerFactory.create().pk)

    def test_frees_the_share_for_another_mate(self, pledged: Pledged) -> None:
        pledging.withdraw(pledged.finn.pk, mate=pledged.mate.pk)
        other: Customer = CustomerFactory.create()
        mates.pay(pledged.finn, mates.AMYS, other)
        assert pledged.status(pledged.finn) == "pledged"


@pytest.mark.rule("pledge.lead_told")
class TestTellingTheLead:
    def test_once_that_everyone_is_in(self, pledged: Pledged) -> None:
        assert not LeadNotification.objects.exists()
        pledged.pledge(pledged.amy, mates.AMYS)
        told = LeadNotification.objects.get()
        assert told.kind == "all_in"
        pledging.withdraw(pledged.finn.pk, mate=pledged.mate.pk)
        pledged.pledge(pledged.finn)
        assert LeadNotification.objects.get().pk == told.pk, "one mate cannot use up the lead's texts"

    def test_when_the_last_missing_mate_refuses(self, pledged: Pledged) -> None:
        mate_shares.decline(pledged.amy.pk)
        assert set(LeadNotification.objects.values_list("kind", flat=True)) == {"declined", "all_in"}


@pytest.mark.rule("pledge.split_changes")
class TestAChangedSplit:
    def test_keeps_the_pledge_of_a_mate_whose_place_changes(self, pledged: Pledged) -> None:
        pledged.pledge(pledged.amy, mates.AMYS)
        pledged.split(Share(2000, "Amy"))
        assert (pledged.status(pledged.finn), pledged.status(pledged.amy)) == ("cancelled", "pledged")
        assert pledged.order.payment_requests.get() == pledged.amy

    def test_swaps_places(self, pledged: Pledged) -> None:
        pledged.split(Share(2000, "Amy"), Share(2000, "Finn"))
        rows = pledged.order.payment_requests.order_by("position")
        assert list(rows) == [pledged.amy, pledged.finn] and pledged.status(pledged.finn) == "pledged"

    def test_requests_a_share_again_from_a_mate_who_declined(self, pledged: Pledged) -> None:
        mate_shares.decline(pledged.amy.pk)
        pledged.split(Share(2000, "Finn"), Share(2500, "Amy"))
        assert pledged.status(pledged.amy) == "open"

    def test_never_charges_another_amount_than_the_mate_agreed_to(self, pledged: Pledged) -> None:
        pledged.split(Share(2000, "Finn"), Share(6000, "Amy"))
        card = CardUse(bank.tokenise(subject=pledged.amy.pk, number=mates.AMYS))
        with pytest.raises(ShareNotOpen, match="changed"):
            mate_shares.pay(pledged.amy.pk, agreed=(2000, []), card=card, mate=pledged.mate, cause=CAUSE)
        assert pledged.held_for(pledged.amy) == []

    def test_is_a_change_that_lists_show(self, pledged: Pledged) -> None:
        before = pledged.read().updated_at
        mate_shares.cancel(pledged.finn.pk)
        assert pledged.read().updated_at > before


def test_a_second_share_leaves_the_pledge_its_name(pledged: Pledged) -> None:
    pledged.split(Share(2000, "Finn"), Share(2000), Share(1000))
    sam, other = pledged.order.payment_requests.filter(name="").order_by("position")
    share_claims.claim_share(sam.pk, claim="a" * 64, name="Sam")
    card = CardUse(bank.tokenise(subject=sam.pk, number=mates.AMYS))
    mate_shares.pay(sam.pk, card=card, mate=pledged.mate, cause=CAUSE, claim="a" * 64)
    share_claims.claim_share(other.pk, claim="a" * 64, name="Zoe")
    sam.refresh_from_db()
    assert (sam.status, sam.shown_name) == ("pledged", "Sam")
