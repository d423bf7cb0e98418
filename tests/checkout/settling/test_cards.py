"""The amount that each card has borne, and the amount that can still be refunded to it."""

from uuid import uuid4

import pytest

from checkout.models import Checkout, PaymentRequest
from checkout.settling import cards
from config.lib import clock
from payments import bookings
from payments.models import Booking, Movement, Operation, Payment
from tests import mates, outside
from tests.factories import CAUSE

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]


def card_of(order: Checkout) -> cards.Card:
    """Read the accounts of the order again, and return the lead's card."""
    order = Checkout.objects.select_related("payment").get(pk=order.pk)
    lead = cards.read_accounts(order, is_locked=False).lead
    assert lead is not None
    return lead


@pytest.mark.rule("money.borne", "settle.targets")
class TestACard:
    def test_bears_the_charged_amount_less_dashboard_refunds(self, captured: Checkout) -> None:
        outside.refund_outside(captured.payment, 4000)
        card = card_of(captured)
        assert (card.borne, card.outside, card.free) == (5000, 4000, 5000)
        assert card.owed(5000) == 0

    def test_has_a_free_amount_without_pending_dashboard_refunds(self, captured: Checkout) -> None:
        outside.refund_outside(captured.payment, 4000, is_pending=True)
        card = card_of(captured)
        assert (card.borne, card.sent, card.free) == (9000, 4000, 5000)

    def test_has_no_free_amount_if_more_was_sent_to_it_than_it_can_take(self) -> None:
        card = cards.Card(Payment(), moved=4000, sent=4500)
        assert (card.free, card.owed(0)) == (0, -500)

    def test_does_not_bear_a_disputed_amount(self, captured: Checkout) -> None:
        found = outside.dispute(captured.payment)
        assert (card_of(captured).borne, card_of(captured).disputed) == (0, 9000)
        outside.decide(found, is_won=True)
        assert (card_of(captured).borne, card_of(captured).disputed) == (9000, 0)

    def test_that_is_only_held_is_not_counted(self, held: Checkout) -> None:
        assert cards.read_accounts(held, is_locked=False).cards == {}


@pytest.mark.rule("money.borne")
def test_a_settled_part_of_a_refund_has_nothing_outstanding(captured: Checkout) -> None:
    mates.give_back(captured)
    outside.settle(captured)
    refund = Operation.objects.get(purpose="refund_part")
    key = cards.part_key_of(refund)
    assert key is not None
    part = cards.read_accounts(captured, is_locked=False).parts[key]
    assert (part.refunded, part.given, part.outstanding, part.sent) == (9000, 9000, 0, 0)


@pytest.mark.parametrize(
    ("state", "reason", "is_tried"),
    [
        ("planned", "", False),
        ("failed", "withdrawn", False),
        ("failed", "new_key", False),
        ("failed", "refused", True),
        ("in_flight", "", True),
        ("succeeded", "", True),
    ],
)
def test_attempt_counts_only_if_it_was_carried_out(state: str, reason: str, is_tried: bool) -> None:
    attempt = Operation(state=state, reason=reason, created_at=clock.now())
    assert cards.Part([attempt]).last == (attempt if is_tried else None)


@pytest.mark.rule("refund.returned")
def test_returned_refunds_of_one_card_are_together_owed_only_what_it_still_bears() -> None:
    order, lead = Checkout(status="refunded"), Payment()
    first, second = (cards.Part(returned=amount, came_back={uuid4()}) for amount in (3000, 2000))
    parts = {cards.PartKey(lead.pk, None, uuid4()): part for part in (first, second)}
    accounts = cards.Accounts(order, {lead.pk: cards.Card(lead, moved=4000)}, parts, [], [])
    cards._add_outstanding(accounts)
    assert (first.outstanding, second.outstanding, accounts.cards[lead.pk].outstanding) == (3000, 1000, 4000)


@pytest.mark.rule("refund.returned")
def test_only_the_booking_of_a_returned_refund_replaces_the_return() -> None:
    """Another attempt at the same part has failed, and its amount was settled outside too."""
    lead, refund, outside_kind = Payment(), uuid4(), Booking.Kind.SETTLED_OUTSIDE
    returned, failed = (Operation(payment=lead, refund_uuid=refund) for _ in range(2))
    rows = [
        Booking(kind=Booking.Kind.CLOSING, payment=lead, amount=500),
        Booking(kind=outside_kind, payment=lead, operation=returned, amount=3000),
        Booking(kind=outside_kind, payment=lead, operation=failed, amount=2000),
    ]
    part = cards.Part([returned, failed])
    accounts = cards.Accounts(Checkout(), {}, {cards.PartKey(lead.pk, refund, None): part}, [], rows)
    movement = Movement(kind=Movement.Kind.REFUND_RETURNED, operation=returned)
    cards._add_bookings(accounts, part.attempts, [movement])
    assert (part.settled, part.settled_after_return) == (5000, 3000)


class TestTheAmountThatTheLeadsCardCanTake:
    def is_at_most(self, order: Checkout, amount: int) -> bool:
        order.refresh_from_db()
        return cards.can_refund_to_lead(order, amount) and not cards.can_refund_to_lead(order, amount + 1)

    def test_is_all_that_the_card_was_charged(self, captured: Checkout) -> None:
        assert self.is_at_most(captured, 9000)

    def test_excludes_shares_that_the_lead_is_still_owed(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        assert self.is_at_most(unpaid, 6000)

    def test_does_not_grow_if_the_lead_got_a_share_twice(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        """An operator settles a reimbursement outside the service, and the card gets it too."""
        assert mates.settled(shared) == "reimbursed"
        sent = Operation.objects.select_related("payment").get(share_uuid=shared.pk)
        bookings.settle_outside(sent, 3000, note="In cash.", now=clock.now(), cause=CAUSE)
        assert self.is_at_most(unpaid, 6000)
