"""The notices on the group page, and what a mate sees after a pledge has ended."""

from datetime import timedelta
from typing import Any

import pytest

from checkout import cancellations, captures
from checkout.models import Checkout
from payments.models import Switch
from tests import factories
from tests.factories import CAUSE
from tests.hosted_page.browsers import Payer, words
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.status.reading import plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]
SPLIT: dict[str, Any] = {"split": "own", "name": ["Finn", ""], "amount": ["20", "30"], "your_name": "Lea"}
RELEASED = "The hold of £20.00 on your card is released."
LIVE = {"HX-Request": "true"}


@pytest.fixture
def lead(unpaid: Checkout) -> Payer:
    """Return the browser of Lea, who asks Finn (£20.00) and one more mate (£30.00) to pledge before she pays."""
    made = Payer(unpaid)
    made.sign_in()
    split(made, **SPLIT)
    return made


def split(lead: Payer, **fields: Any) -> None:
    lead.client.post(f"/pay/split?id={lead.checkout.pk}", SPLIT | {"when": "first"} | fields)


@pytest.fixture
def finn(lead: Payer) -> Guest:
    """Return the browser of Finn, who used the group link and has pledged."""
    made = Guest(lead.checkout)
    made.take(2)
    made.pay(2)
    assert "You’re in for £20.00" in plain(words(made.get("/2")))
    return made


@pytest.mark.rule("pledge.ends")
class TestAMateWhosePledgeHasEnded:
    @pytest.mark.rule("pledge.withdraw")
    def test_reads_after_withdrawing_that_the_hold_is_released(self, finn: Guest, lead: Payer) -> None:
        page = plain(words(finn.client.post(f"{finn.path}/2/withdraw", follow=True)))
        assert "You have withdrawn" in page and RELEASED in page
        assert "left at" in plain(words(lead.get()))

    def test_reads_that_the_lead_has_changed_the_amount(self, finn: Guest, lead: Payer) -> None:
        split(lead, amount=["25", "30"])
        page = plain(words(finn.get()))
        assert "Lea changed your share" in page and RELEASED in page
        assert "It was £20.00 and is now £25.00." in page

    def test_reads_that_the_lead_has_replaced_the_share(self, finn: Guest, lead: Payer) -> None:
        split(lead, name=["Bo", ""], amount=["25", "30"])
        page = plain(words(finn.client.get(f"{finn.path}/2", follow=True)))
        assert "Lea changed the split" in page and RELEASED in page

    def test_reads_it_at_a_place_that_is_no_longer_on_the_bill(self, finn: Guest, lead: Payer) -> None:
        split(lead, split="all")
        open_page = finn.client.get(f"{finn.path}/2", headers=LIVE)
        assert open_page.status_code == 200
        page = plain(words(finn.get("/2")))
        assert "Lea is no longer asking for this" in page
        assert "The hold of £20.00 on your Mastercard ending 4444 is released." in page

    def test_at_such_a_place_a_stranger_learns_nothing(self, finn: Guest, lead: Payer) -> None:
        split(lead, split="all")
        stranger = Guest(lead.checkout)
        assert "£20.00" not in words(stranger.client.get(f"{stranger.path}/2", follow=True))

    def test_reads_why_the_order_ended(self, finn: Guest, lead: Payer) -> None:
        factories.make_late(Checkout.objects.get())
        lead.get()
        page = plain(words(finn.get("/2")))
        assert "You have not been charged" in page
        assert "Lea did not pay in time, so the order has expired." in page
        assert "The hold of £20.00 on your Mastercard ending 4444 is released." in page

    @pytest.mark.parametrize("is_stopped", [True, False])
    def test_does_not_read_that_the_lead_was_late_if_the_shop_was_stopped(
        self, finn: Guest, lead: Payer, is_stopped: bool
    ) -> None:
        factories.stop(lead.checkout.merchant)
        factories.stop(lead.checkout.merchant, is_stopped=is_stopped)
        factories.make_late(Checkout.objects.get())
        lead.get()
        page = plain(words(finn.get("/2")))
        assert "This order has expired. It was not paid in time." in page
        stranger = plain(words(Guest(lead.checkout).get()))
        assert "This order was not paid in time. No one has been charged." in stranger
        assert "Lea did not pay" not in page + stranger

    def test_reads_that_the_lead_was_late_if_the_stop_was_lifted_before_the_order(
        self, finn: Guest, lead: Payer
    ) -> None:
        factories.stop(None, is_stopped=False)
        Switch.objects.update(changed_at=lead.checkout.created_at - timedelta(minutes=1))
        factories.make_late(Checkout.objects.get())
        lead.get()
        assert "Lea did not pay in time." in plain(words(Guest(lead.checkout).get()))

    def test_reads_that_the_shop_did_not_complete_the_order(self, finn: Guest, lead: Payer) -> None:
        cancellations.cancel(lead.checkout.merchant, lead.checkout.pk, cause=CAUSE)
        page = plain(words(finn.get("/2")))
        assert "Acme Tickets did not complete the order, and took no money." in page
        assert "is no longer asking" not in page


@pytest.mark.rule("group.opens")
class TestAnOpenPageOfAnOrderThatHasEnded:
    @pytest.fixture
    def ended(self, lead: Payer) -> Guest:
        guest = Guest(lead.checkout)
        cancellations.cancel(lead.checkout.merchant, lead.checkout.pk, cause=CAUSE)
        return guest

    def test_says_only_that_the_order_has_ended(self, ended: Guest) -> None:
        page = plain(words(ended.take(2)))
        assert "This order has ended" in page and "was just taken" not in page
        assert "is no longer asking" not in page


@pytest.mark.rule("pledge.lead")
def test_a_mate_reads_that_the_lead_paid_with_the_same_card(finn: Guest, lead: Payer) -> None:
    bank = lead.get("/card")["Location"]
    card = {"number": "5555555555554444", "expiry": "08 / 49", "code": "123"}
    lead.client.get(lead.client.post(bank, card)["Location"])
    page = plain(words(finn.get("/2")))
    assert "Lea paid with the same card, so it cannot pay for your share too." in page
    captures.capture(lead.checkout.merchant, lead.checkout.pk, cause=CAUSE)
    share = lead.checkout.payment_requests.get(position=2)
    assert share.status == "open"
    finn.take(2)
    page = words(finn.client.get(finn.get("/2/card")["Location"]))
    assert "This card has already paid the whole order." in plain(page)


@pytest.mark.rule("pledge.ends")
def test_a_mate_whose_card_comes_too_late_reads_that_nothing_is_held(lead: Payer) -> None:
    finn = Guest(lead.checkout)
    finn.take(2)
    cancellations.cancel(lead.checkout.merchant, lead.checkout.pk, cause=CAUSE)
    page = plain(words(finn.client.get(f"{finn.path}/2/paid", follow=True)))
    assert "This order has ended" in page
    assert "No one has been charged. Any hold for this order is released." in page
