"""The bar on the lead's bill: its parts, and how it shows money that banks returned to mates."""

import pytest

from checkout.models import Checkout
from checkout.states import ShareStatus
from tests import mates
from tests.hosted_page.browsers import Mate, Payer
from tests.hosted_page.group.test_dispute import main
from tests.outside import decide, dispute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]


def bar_of(lead: Payer) -> str:
    """Return the HTML of the bar on the lead's page."""
    return main(lead.get()).partition('<svg class="group-bar')[2].partition("<dl")[0]


def looks(bar: str) -> list[str]:
    return [part.partition('"')[0] for part in bar.split('<svg class="look-')[1:]]


def test_has_a_part_for_each_person_in_the_order_of_the_lines(lead: Payer, finn: Mate) -> None:
    finn.pay()
    assert mates.settled(finn.share) == ShareStatus.REIMBURSED
    bar = bar_of(lead)
    assert looks(bar) == ["mine person-1", "paid person-2", "out person-3"]
    assert [text.partition("<")[0].rpartition(">")[2] for text in bar.split("<text")[1:]] == ["You", "F", "A"]


@pytest.mark.rule("dispute.lost")
def test_draws_returned_money_without_saying_which_mate_got_it(
    lead: Payer, finn: Mate, order: Checkout
) -> None:
    amy = order.payment_requests.get(position=3)
    finn.pay()
    mates.pay(amy)
    assert {mates.settled(share) for share in (finn.share, amy)} == {ShareStatus.REIMBURSED}
    finn.share.refresh_from_db()
    decide(dispute(finn.share.payment), is_won=False)
    bar = bar_of(lead)
    assert looks(bar) == ["mine person-1", "paid person-2", "returned"]
    assert "<text" not in bar.partition("look-paid")[2]
