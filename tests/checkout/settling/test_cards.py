"""The amount that each card has borne, and the amount that can still be refunded to it."""

import pytest

from checkout.models import Checkout
from checkout.settling import cards
from payments.models import Operation
from tests import mates, outside

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
