"""The texts around the card fields: which amounts are held, and which are returned to the lead."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from checkout import captures
from checkout.models import Checkout
from payments.models import Merchant, Payment
from payments.providers.sandbox.models import CardSession, Charge
from tests import mates
from tests.factories import CAUSE, stop
from tests.hosted_page.browsers import Mate, Payer, waiting_lead, words
from tests.hosted_page.status.reading import plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]
SPLIT: dict[str, Any] = {"split": "own", "name": ["Finn", "Amy"], "amount": ["20", "30"], "your_name": "Lea"}
CARD = {"number": "4242424242424242", "expiry": "08 / 49", "code": "123"}


@pytest.fixture
def lead(unpaid: Checkout) -> Payer:
    """Return the browser of Lea, who asks Finn (£20.00) and Amy (£30.00) to pledge before she pays."""
    return waiting_lead(unpaid, "Finn", "Amy")


def card_page(lead: Payer) -> str:
    return plain(words(lead.client.get(lead.get("/card")["Location"])))


@pytest.mark.rule("pledge.page")
class TestTheLeadsRows:
    def test_separate_what_is_pledged_from_what_is_still_due(self, lead: Payer) -> None:
        Mate(lead.checkout.payment_requests.get(position=2)).pay()
        page = card_page(lead)
        assert "Goes back once Acme Tickets confirms£20.00" in page
        assert "Goes back when your mate pays£30.00" in page
        assert "If a mate never pays, you cover their share." in page

    def test_do_not_say_that_a_mate_might_not_pay_once_all_are_in(self, lead: Payer) -> None:
        for share in lead.checkout.payment_requests.all():
            phone = f"07700 90045{share.position}"
            mate = Mate(share)
            mate.sign_in(phone)
            mate.give_card("5555555555554444" if share.position == 2 else "378282246310005")
        page = card_page(lead)
        assert "Goes back once Acme Tickets confirms£50.00" in page and "never pays" not in page


@pytest.mark.rule("pledge.split_changes")
class TestTheWayToTheSplit:
    ASKS = "Mates whose share changes are asked again, and the holds on their cards are released."

    def test_asks_first_while_mates_can_be_in(self, lead: Payer) -> None:
        page = words(lead.client.get(lead.get("/card")["Location"]))
        question = page.partition('class="leave change-split"')[2].partition("</details>")[0]
        assert self.ASKS in question and "Yes, change it" in question
        assert page.count("/pay/split?") == question.count("/pay/split?") == 1, (
            "no link leads past the question"
        )

    def test_asks_nothing_before_any_mate_was_asked(self, unpaid: Checkout) -> None:
        made = Payer(unpaid)
        made.sign_in()
        made.client.post(f"/pay/split?id={unpaid.pk}", SPLIT)
        page = card_page(made)
        assert "Change who pays" in page and self.ASKS not in page


@pytest.mark.rule("pay.token_once")
class TestACardThatWasRefused:
    def test_is_not_used_by_a_reload_after_the_shop_is_open_again(self, lead: Payer) -> None:
        page = lead.get("/card")["Location"]
        stop(lead.checkout.merchant)
        back = lead.client.post(page, CARD)["Location"]
        refused = lead.client.get(back)
        assert refused.status_code == 303 and "card_token" not in refused["Location"]
        assert "can’t take payments right now" in words(lead.client.get(refused["Location"]))
        stop(lead.checkout.merchant, is_stopped=False)
        lead.client.get(refused["Location"])
        assert not Payment.objects.exists()


@pytest.mark.rule("operator.stop")
class TestAStopOfTheShop:
    STOPPED = "can’t take payments right now"

    def test_is_shown_by_the_split_step_and_saves_nothing(self, unpaid: Checkout) -> None:
        made = Payer(unpaid)
        made.sign_in()
        stop(unpaid.merchant)
        for answer in (made.get("/split"), made.client.post(f"/pay/split?id={unpaid.pk}", {"split": "all"})):
            assert answer["Location"] == f"/pay?id={unpaid.pk}"
        assert self.STOPPED in words(made.get()) and Checkout.objects.get().people is None

    def test_is_shown_by_a_reload_of_the_card_page(self, lead: Payer) -> None:
        page = lead.get("/card")["Location"]
        stop(lead.checkout.merchant)
        CardSession.objects.update(created_at=timezone.now() - timedelta(minutes=1))
        shown = lead.client.get(page, follow=True)
        assert self.STOPPED in words(shown)

    def test_of_another_shop_does_not_concern_the_card_page(self, lead: Payer) -> None:
        page = lead.get("/card")["Location"]
        stop(Merchant.objects.create(name="Other"))
        CardSession.objects.update(created_at=timezone.now() - timedelta(minutes=1))
        assert lead.client.get(page).status_code == 200


@pytest.mark.rule("pledge.captured")
def test_a_mate_whose_share_could_not_be_taken_reads_who_covers_it(lead: Payer) -> None:
    finn = Mate(lead.checkout.payment_requests.get(position=2))
    finn.pay()
    lead.client.get(lead.client.post(lead.get("/card")["Location"], CARD)["Location"])
    captures.capture(lead.checkout.merchant, lead.checkout.pk, cause=CAUSE)
    Charge.objects.filter(last4="4444").update(state="voided")
    assert mates.settled(finn.share) == "open"
    page = plain(words(finn.client.get(finn.get("/card")["Location"])))
    assert "Lea covers your share until you pay." in page and "goes back to" not in page
