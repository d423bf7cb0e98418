"""The people and shares of a bill, as anyone with the group link sees them."""

import re
from itertools import pairwise
from typing import Any

import pytest

from checkout import current_checkouts, mate_shares
from checkout.group import share_claims
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from hosted_page.group import group_members
from hosted_page.group.group_members import GroupBill
from tests import mates
from tests.hosted_page.browsers import TIME

pytestmark = pytest.mark.django_db
ZOE = "z" * 64


@pytest.fixture
def shares(order: Checkout) -> list[PaymentRequest]:
    """Remove the names from the order's shares, and return the shares."""
    order.payment_requests.update(name="")
    return list(order.payment_requests.order_by("position"))


def bill(order: Checkout, claim: str = "") -> GroupBill:
    order.refresh_from_db()
    return group_members.bill_for_claim(order, current_checkouts.shares_of(order), claim, clock.now())


def states(order: Checkout) -> list[str]:
    return [person.state for person in bill(order).people]


def test_the_bar_is_as_wide_as_the_amounts(order: Checkout) -> None:
    parts = bill(order).people
    assert sum(float(part.width) for part in parts) == pytest.approx(100, abs=0.01)
    for before, after in pairwise(parts):
        assert float(before.left) + float(before.width) == pytest.approx(float(after.left), abs=0.01)


def test_the_looks_of_shares_need_no_query(
    by_item: Checkout, order: Checkout, shares: list[PaymentRequest], django_assert_num_queries: Any
) -> None:
    shares += by_item.payment_requests.order_by("position")
    assert by_item.bill
    with django_assert_num_queries(0):
        looks = [group_members.look_of_person(by_item, share) for share in shares]
        names = [group_members.name_of(share) for share in shares]
    assert names == ["Share 2", "Share 3", "Finn", "4 free"]
    assert [look["initial"] for look in looks] == ["2", "3", "F", "4"]


@pytest.mark.rule("group.privacy")
def test_each_share_is_shown_as_paid_taken_free_or_the_leads(
    order: Checkout, shares: list[PaymentRequest]
) -> None:
    assert states(order) == ["lead", "free", "free"]
    share_claims.claim_share(shares[0].pk, claim=ZOE, name="Zoe")
    assert states(order) == ["lead", "taken", "free"]
    mates.pay(shares[1])
    assert states(order) == ["lead", "taken", "taken"]
    assert mates.settled(shares[1]) == "reimbursed" and states(order) == ["lead", "taken", "paid"]
    mate_shares.cancel(shares[0].pk)
    gone = bill(order).people[1]
    assert (gone.state, gone.name, gone.tint) == ("lead", bill(order).people[0].name, 1)


@pytest.mark.rule("group.privacy")
def test_a_free_share_does_not_show_who_withdrew(order: Checkout, shares: list[PaymentRequest]) -> None:
    PaymentRequest.objects.filter(pk=shares[0].pk).update(claim_name="Zoe")
    free = bill(order).people[1]
    assert (free.state, free.name, free.initial) == ("free", "Share 2", "2")


@pytest.mark.rule("group.own_link")
def test_a_share_with_its_own_link_sent_by_text_reads_sent(
    order: Checkout, shares: list[PaymentRequest]
) -> None:
    PaymentRequest.objects.filter(pk=shares[0].pk).update(phone="+447700900456")
    assert states(order) == ["lead", "sent", "free"]


@pytest.mark.rule("group.kept")
def test_a_share_reserved_for_this_browser_shows_its_end(
    order: Checkout, shares: list[PaymentRequest]
) -> None:
    share_claims.claim_share(shares[0].pk, claim=ZOE, name="Zoe")
    mine = bill(order, ZOE).mine
    assert mine is not None and mine.name == "Zoe"
    assert re.fullmatch(TIME, mine.until), "it names its zone, as every time does"
    assert bill(order).mine is None and bill(order).people[1].until == ""


@pytest.mark.rule("group.name")
@pytest.mark.usefixtures("shares")
def test_a_share_without_a_name_is_named_by_its_position(order: Checkout) -> None:
    first = bill(order).people[1]
    assert (first.name, first.initial, first.of_whom) == ("Share 2", "2", "Share 2")
    PaymentRequest.objects.update(amount=3000)
    assert bill(order).people[1].name == "One of 3 equal shares" and bill(order).each == "£30.00"


@pytest.mark.rule("group.name")
def test_a_typed_name_disappears_with_the_claim(order: Checkout, shares: list[PaymentRequest]) -> None:
    share_claims.claim_share(shares[0].pk, claim=ZOE, name="Zoe")
    PaymentRequest.objects.update(claimed_until=clock.now())
    assert "Zoe" not in [person.name for person in bill(order).people]


def test_mates_have_colours_in_the_order_of_their_shares(order: Checkout) -> None:
    assert [person.tint for person in bill(order).people] == [1, 2, 3]
    assert [group_members.colour_number(PaymentRequest(position=place)) for place in range(2, 8)] == [
        2,
        3,
        4,
        5,
        6,
        2,
    ]


def test_a_narrow_part_of_the_bar_has_no_letter(order: Checkout) -> None:
    order.payment_requests.filter(position=2).update(amount=order.amount * 5 // 100)
    assert [person.has_room for person in bill(order).people] == [True, False, True]
