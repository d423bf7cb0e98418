"""The amount of a split order is divided into the lead's part, open shares and paid shares."""

import pytest

from checkout import current_checkouts, mate_shares
from checkout.group import share_changes
from checkout.models import Checkout, PaymentRequest
from tests import mates

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven")]


def borne(order: Checkout) -> tuple[int, int, int, int]:
    found = current_checkouts.split_of(order, current_checkouts.shares_of(order))
    assert sum(found) == order.amount, "the three come to all of it"
    return (*found, found.bears)


@pytest.mark.rule("share.borne")
class TestBorne:
    def test_counts_open_shares_as_outstanding_until_they_are_paid(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        finn, _ = shares
        assert borne(order) == (4000, 5000, 0, 9000)
        mates.pay(finn)
        assert borne(order) == (4000, 5000, 0, 9000), "a card that is being asked has not paid"
        mates.pump(order.pk)
        finn.refresh_from_db()
        assert borne(order) == (4000, 3000, 2000, 7000)
        assert mates.settled(finn) == "reimbursed"
        assert borne(order) == (4000, 3000, 2000, 7000)

    def test_adds_declined_and_kept_shares_to_the_lead_until_they_are_asked_again(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        finn, amy = shares
        mate_shares.decline(finn.pk)
        mate_shares.cancel(amy.pk)
        assert borne(order) == (9000, 0, 0, 9000)
        share_changes.ask_again(amy.pk)
        assert borne(order) == (6000, 3000, 0, 9000)

    def test_counts_all_shares_as_outstanding_before_the_capture(self, unpaid: Checkout) -> None:
        mates.split(unpaid, 2000, 3000)
        unpaid.refresh_from_db()
        assert borne(unpaid) == (4000, 5000, 0, 9000)
