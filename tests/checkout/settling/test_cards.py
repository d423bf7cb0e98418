"""For each card of an order: the net amount that was charged to it, and the amount that it can still get back."""

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from checkout import settling
from checkout.models import Checkout, PaymentRequest
from checkout.settling import cards
from config.lib import clock
from payments import bookings
from payments.models import Booking, Discrepancy, Movement, Operation, Payment
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
        assert (card.borne, card.unconfirmed, card.free) == (9000, 4000, 5000)

    def test_has_no_free_amount_if_more_was_sent_to_it_than_it_can_take(self) -> None:
        card = cards.Card(Payment(), moved=4000, unconfirmed=4500)
        assert (card.free, card.owed(0)) == (0, -500)

    def test_does_not_bear_a_disputed_amount(self, captured: Checkout) -> None:
        found = outside.dispute(captured.payment)
        assert (card_of(captured).borne, card_of(captured).disputed) == (0, 9000)
        outside.decide(found, is_won=True)
        assert (card_of(captured).borne, card_of(captured).disputed) == (9000, 0)

    def test_that_is_only_held_is_not_counted(self, held: Checkout) -> None:
        assert cards.read_accounts(held, is_locked=False).cards == {}

    def test_of_a_mate_should_bear_the_share_less_its_dashboard_refunds(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        outside.refund_outside(shared.payment, 1000)
        unpaid.refresh_from_db()
        accounts = cards.read_accounts(unpaid, is_locked=False)
        assert shared.payment_id is not None
        card = accounts.cards[shared.payment_id]
        assert (card.borne, accounts.target(card)) == (2000, 2000)
        assert not Discrepancy.objects.exists()

    def test_counts_what_was_sent_to_it_by_who_sent_it_and_by_the_providers_answer(self) -> None:
        lead, ours = Payment(), uuid4()
        refunds = [
            Operation(payment=lead, refund_uuid=ours, state="planned", amount=1000),
            Operation(payment=lead, refund_uuid=ours, state="in_flight", amount=500),
            Operation(payment=lead, refund_uuid=ours, state="pending", amount=200),
            Operation(payment=lead, state="pending", amount=70),
            Operation(payment=lead, state="succeeded", amount=5),
            Operation(payment=Payment(), state="pending", amount=3000),
        ]
        card = cards.Card(lead)
        accounts = cards.Accounts(Checkout(), {lead.pk: card}, {}, [], [])
        cards._add_operations(accounts, refunds, [])
        assert (card.unconfirmed, card.accepted, card.outside) == (770, 270, 70)

    def test_without_a_recorded_capture_is_left_out(self) -> None:
        """A dispute can name a payment whose capture the service never requested."""
        lead = Payment()
        movements = [
            Movement(payment=Payment(), kind=Movement.Kind.DISPUTE_WITHDRAWN, amount=-500),
            Movement(payment=lead, kind=Movement.Kind.CAPTURED, amount=9000),
        ]
        accounts = cards.Accounts(Checkout(), {lead.pk: cards.Card(lead)}, {}, [], [])
        cards._add_movements(accounts, [], movements)
        assert accounts.cards[lead.pk].moved == 9000


@pytest.mark.parametrize(("is_locked", "locks"), [(True, 1), (False, 0)])
def test_only_a_reading_with_a_lock_locks_the_refunds(
    captured: Checkout, is_locked: bool, locks: int
) -> None:
    with CaptureQueriesContext(connection) as queries:
        cards.read_accounts(captured, is_locked=is_locked)
    statements = [query["sql"] for query in queries if " FOR " in query["sql"]]
    assert len(statements) == locks
    assert all("FOR NO KEY UPDATE" in sql and "payments_operation" in sql for sql in statements)


def test_a_decision_about_a_refund_locks_the_refunds(captured: Checkout) -> None:
    with CaptureQueriesContext(connection) as queries:
        cards.read_accounts(captured)
        assert cards.has_unrefunded_amount(captured)
    assert sum("FOR NO KEY UPDATE" in query["sql"] for query in queries) == 2


def test_reading_for_a_page_locks_nothing(captured: Checkout) -> None:
    outside.refund_outside(captured.payment, 4000)
    with CaptureQueriesContext(connection) as queries:
        assert cards.read_accounts_unlocked(captured) is not None
    assert not [query["sql"] for query in queries if "UPDATE" in query["sql"]]


def test_share_of_an_order_without_a_card_has_no_reimbursement() -> None:
    part = cards.Part(refunded=3000)
    lead = cards.PartKey(uuid4(), None, uuid4())
    accounts = cards.Accounts(Checkout(), {}, {lead: part}, [], [])
    assert accounts.reimbursement(PaymentRequest(pk=lead.share_uuid))[1] == cards.Part()


@pytest.mark.rule("money.borne")
def test_an_order_that_needs_no_accounts_is_not_asked_about_refunds_by_others(captured: Checkout) -> None:
    shown = settling.with_needs_accounts(Checkout.objects.filter(pk=captured.pk)).get()
    with CaptureQueriesContext(connection) as sent:
        assert not settling.is_refunded_by_others(shown)
    assert len(sent) == 0
    outside.refund_outside(captured.payment, 4000)
    assert settling.is_refunded_by_others(settling.with_needs_accounts(Checkout.objects.all()).get())


def test_a_settled_part_of_a_refund_has_nothing_outstanding(captured: Checkout) -> None:
    mates.give_back(captured)
    outside.settle(captured)
    refund = Operation.objects.get(purpose="refund_part")
    key = cards.part_key_of(refund)
    assert key is not None
    part = cards.read_accounts(captured, is_locked=False).parts[key]
    assert (part.refunded, part.received, part.outstanding, part.unconfirmed) == (9000, 9000, 0, 0)


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
    first, second = (cards.Part(returned=amount, returned_uuids={uuid4()}) for amount in (3000, 2000))
    parts = {cards.PartKey(lead.pk, None, uuid4()): part for part in (first, second)}
    accounts = cards.Accounts(order, {lead.pk: cards.Card(lead, moved=4000)}, parts, [], [])
    cards._add_outstanding(accounts)
    assert (first.outstanding, second.outstanding, accounts.cards[lead.pk].outstanding) == (3000, 1000, 4000)


@pytest.mark.rule("refund.returned")
@pytest.mark.parametrize(
    ("again", "settled", "left"), [(0, 0, 3000), (1000, 0, 2000), (0, 1000, 2000), (4000, 0, 0)]
)
def test_a_returned_amount_is_reduced_by_what_was_sent_again_or_settled_outside(
    again: int, settled: int, left: int
) -> None:
    resent = Operation(payment=Payment(), resends_id=uuid4(), state="succeeded", amount=again)
    part = cards.Part([resent], returned=3000, settled_after_return=settled)
    assert part.unreplaced == left


def test_a_returned_refund_is_not_outstanding_while_another_refund_of_it_is_sent() -> None:
    lead = Payment(amount=9000)
    card = cards.Card(lead, moved=9000, unconfirmed=9000)
    part = cards.Part(returned=3000, returned_uuids={uuid4()})
    parts = {cards.PartKey(lead.pk, None, uuid4()): part}
    cards._add_outstanding(cards.Accounts(Checkout(status="refunding"), {lead.pk: card}, parts, [], []))
    assert (part.outstanding, card.outstanding) == (0, 0)


def test_returned_refund_that_is_sent_again_is_not_outstanding_while_the_card_is_owed_more() -> None:
    lead, refund = Payment(), uuid4()
    resent = Operation(payment=lead, refund_uuid=refund, resends_id=uuid4(), state="in_flight", amount=3000)
    part = cards.Part([resent], returned=3000, returned_uuids={uuid4()})
    card = cards.Card(lead, moved=4000, unconfirmed=3000)
    parts = {cards.PartKey(lead.pk, refund, None): part}
    cards._add_outstanding(cards.Accounts(Checkout(status="refunding"), {lead.pk: card}, parts, [], []))
    assert (part.outstanding, card.outstanding, card.owed(0)) == (0, 0, 1000)


@pytest.mark.rule("refund.returned")
def test_only_the_booking_of_a_returned_refund_replaces_the_return() -> None:
    """Two attempts at one refund part were settled outside the service: one was returned, and one had failed."""
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
        """An operator settles a reimbursement outside the service, but the card gets it too."""
        assert mates.settled(shared) == "reimbursed"
        sent = Operation.objects.select_related("payment").get(share_uuid=shared.pk)
        bookings.settle_outside(sent, 3000, note="In cash.", now=clock.now(), cause=CAUSE)
        assert self.is_at_most(unpaid, 6000)
