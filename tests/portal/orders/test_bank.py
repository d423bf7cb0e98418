"""The bank's entries of a timeline: what it was asked, what it said, and what was posted."""

from collections.abc import Callable

import pytest

from checkout.models import Checkout
from portal.orders import bank
from portal.orders.entries import Entry, Window
from portal.orders.order import Order
from tests.outside import decide, dispute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]


def told(checkout: Checkout) -> list[Entry]:
    return sorted(bank.entries(Order(checkout), Window(None, 500)), key=lambda entry: entry.at)


class TestEntries:
    def test_of_a_card_that_was_declined_post_nothing(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (declined,) = told(pay(unpaid, "4000000000009995"))
        assert declined.title == "Holding £90.00 on Visa ending 9995: declined"
        assert (declined.tone, declined.text) == ("stop", "Insufficient funds.")
        assert declined.facts["state"] == "declined" and declined.facts["postings"] == []

    def test_of_money_that_was_taken_say_where_it_stands(self, captured: Checkout) -> None:
        held, taken = told(captured)
        assert (held.title, held.text) == ("The bank holds £90.00 on Visa ending 4242", "")
        assert taken.title == "The bank took £90.00 from Visa ending 4242"
        assert taken.text == "Posted: £90.00 from the bank to you."
        assert sorted(line["amount"] for line in taken.facts["postings"]) == [-9000, 9000]

    def test_of_a_dispute_tell_its_beginning_and_its_end(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        *_, opened = told(captured)
        assert opened.title == "The customer disputes £90.00" and (opened.tone, opened.icon) == (
            "held",
            "alert",
        )
        assert opened.text == "Their bank has taken it back until it has decided."
        decide(found, is_won=True)
        *_, decided = told(captured)
        assert decided.title == "The dispute over £90.00 is won" and decided.tone == "done"
        assert decided.facts["dispute"] == opened.facts["dispute"] == str(found.pk)
