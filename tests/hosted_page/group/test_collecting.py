"""The pages of an order whose mates pledge before the lead pays: her choice, the pledges, and who has pledged."""

import re
from datetime import timedelta
from typing import Any

import pytest

from checkout import authorizations, captures, pledges
from checkout.models import Checkout, PaymentRequest, Prefill
from config.lib import clock
from hosted_page.models import SmsMessage
from payments import operator_stops
from payments.models import Operation
from payments.provider import CardUse
from payments.providers.sandbox import bank
from tests import factories, mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import FINN, Mate, Payer, shown_code, words
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.status.reading import plain
from tests.hosted_page.test_remembered_browsers import remembered

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]
SPLIT: dict[str, Any] = {"split": "own", "name": ["Finn", ""], "amount": ["20", "30"], "your_name": "Lea"}
LIVE = {"HX-Request": "true"}


def share(order: Checkout, position: int) -> PaymentRequest:
    return order.payment_requests.get(position=position)


@pytest.fixture
def lead(unpaid: Checkout) -> Payer:
    """Return the browser of Lea, who asks Finn and one more mate to pledge before she pays."""
    made = Payer(unpaid)
    made.sign_in()
    assert "Get everyone in first" in words(made.get("/split"))
    answer = made.client.post(f"/pay/split?id={unpaid.pk}", SPLIT | {"when": "first"})
    assert answer["Location"] == f"/pay?id={unpaid.pk}"
    return made


@pytest.fixture
def finn(lead: Payer) -> Mate:
    """Return the browser of Finn, who has pledged."""
    made = Mate(share(lead.checkout, 2))
    made.pay()
    assert made.status() == "pledged"
    return made


@pytest.mark.rule("pledge.page")
class TestTheLead:
    def test_sees_who_is_in_and_what_paying_now_means(self, lead: Payer) -> None:
        page = plain(words(lead.get()))
        assert "No one else is in yet" in page and "Pay anyway You’d cover £50.00" in page
        Mate(share(lead.checkout, 2)).pay()
        page = plain(words(lead.get()))
        assert re.search(r"Finn £20.00 In \d\d:\d\d (GMT|BST)", page)
        assert "1 of 2 mates is in" in page and "Pay anyway You’d cover £30.00" in page
        assert "If you pay now, you cover £30.00 until the others pay." in page
        PaymentRequest.objects.filter(position=3).update(name="Amy")
        assert "If you pay now, you cover Amy’s £30.00 until Amy pays." in plain(words(lead.get()))
        amy = Mate(share(lead.checkout, 3))
        amy.sign_in("07700 900457")
        amy.give_card()
        page = plain(words(lead.get()))
        assert "Everyone’s in. Your share is £40.00" in page and "Pay £90.00 Everyone’s in" in page
        assert "£50.00 goes back to your card" in page and "60 minutes left" in page

    def test_is_called_you_on_the_bar_if_the_part_is_wide_enough(self, lead: Payer) -> None:
        assert 'text-anchor="middle">You</text>' in words(lead.get())
        PaymentRequest.objects.filter(position=2).update(amount=5500)
        page = words(lead.get())
        assert 'text-anchor="middle">You</text>' not in page, "the part is too narrow for the word"

    def test_gets_only_the_changing_parts_while_the_page_is_open(self, lead: Payer, finn: Mate) -> None:
        part = words(lead.client.get(f"/pay?id={lead.checkout.pk}&auto=1&collecting=1", headers=LIVE))
        assert "1 of 2 mates is in" in part and 'hx-swap-oob="true"' in part and "<main" not in part

    def test_is_asked_before_a_change_even_if_no_mate_was_in_at_first(self, lead: Payer) -> None:
        page = words(lead.get())  # updates do not change this part, so it must allow for later pledges
        assert "No one else is in yet" in page
        assert "the holds on their cards are released" in page and "Yes, change it" in page

    def test_has_one_main_button(self, lead: Payer) -> None:
        state = 'id="status" class="someone-in"'  # css/hosted_page/collect.css makes the link's button plain
        assert (
            state not in words(lead.get()) and "button-main" not in words(lead.get()).split('id="people"')[1]
        )
        Mate(share(lead.checkout, 2)).pay()
        assert state in words(lead.get()) and "button-main" in words(lead.get()).split('id="people"')[1]

    def test_reloads_the_page_if_the_order_has_ended(self, lead: Payer) -> None:
        Checkout.objects.filter(pk=lead.checkout.pk).update(payable_until=clock.now())
        answer = lead.client.get(f"/pay?id={lead.checkout.pk}&collecting=1", headers=LIVE)
        assert answer["HX-Refresh"] == "true" and not answer.content

    def test_sees_that_time_is_running_in_the_last_five_minutes(self, lead: Payer) -> None:
        held = '<span class="badge tone-held">'
        for minutes, is_short in ((6, False), (4, True)):
            until = clock.now() + timedelta(minutes=minutes)
            Checkout.objects.filter(pk=lead.checkout.pk).update(payable_until=until)
            page = words(lead.get())
            assert f"{minutes} minutes left" in plain(page) and (held in page) == is_short

    def test_can_sign_out_and_is_asked_for_the_same_number(self, lead: Payer) -> None:
        page = words(lead.get())
        assert "Sign out</button>" in page and "Not you?" not in page
        page = words(lead.client.get(lead.post("/leave")["Location"]))
        assert "This order is being split" in page and "use the number that started the split" in page

    @pytest.mark.rule("pledge.choice")
    def test_can_pay_first_and_collect_later(self, unpaid: Checkout) -> None:
        made = Payer(unpaid)
        made.sign_in()
        answer = made.client.post(f"/pay/split?id={unpaid.pk}", SPLIT | {"when": "later"})
        assert answer["Location"] == f"/pay/card?id={unpaid.pk}"
        assert set(unpaid.payment_requests.values_list("status", flat=True)) == {"draft"}

    @pytest.mark.rule("pledge.time")
    def test_is_not_offered_the_choice_shortly_before_the_end(self, unpaid: Checkout) -> None:
        made = Payer(unpaid)
        made.sign_in()
        until = clock.now() + pledges.MIN_TIME_LEFT - timedelta(seconds=5)
        Checkout.objects.filter(pk=unpaid.pk).update(payable_until=until)
        assert "Get everyone in first" not in words(made.get("/split"))
        answer = made.client.post(f"/pay/split?id={unpaid.pk}", SPLIT | {"when": "first"})
        assert answer.status_code == 422 and "too little time left" in words(answer)

    def test_pays_and_each_pledge_is_charged(self, lead: Payer, finn: Mate) -> None:
        bank_page = lead.get("/card")["Location"]
        card = {"number": "4242424242424242", "expiry": "08 / 49", "code": "123"}
        back = lead.client.post(bank_page, card)
        assert "Held, not taken yet" in words(lead.client.get(back["Location"], follow=True))
        captures.capture(lead.checkout.merchant, lead.checkout.pk, cause=CAUSE)
        assert mates.settled(finn.share) == "reimbursed"
        assert mates.borne(lead.checkout) == {"4242": 7000, "4444": 2000}
        page = plain(words(finn.get()))
        assert re.search(r"Lea paid at \d\d:\d\d \w+, and £20.00 was taken from your Mastercard", page)
        assert page.count("was taken from") == 1 and "It is back on Lea’s card. You’ve settled up" in page


@pytest.mark.rule("pledge.page", "pledge.ends")
class TestAnotherPersonAtTheOrdersLink:
    NOTICE = "With another number, you take over: the split ends"

    def test_reads_before_the_sign_in_that_it_ends_the_split(self, lead: Payer, finn: Mate) -> None:
        other = Payer(lead.checkout)
        assert self.NOTICE in words(other.get())
        other.sign_in("07700 900457")
        assert finn.status() == "cancelled"

    def test_reads_it_if_the_shop_sent_a_number_or_the_browser_is_remembered(self, lead: Payer) -> None:
        Prefill.objects.create(checkout=lead.checkout, phone="+447700900457")
        assert self.NOTICE in words(Payer(lead.checkout).get())
        Prefill.objects.all().delete()
        browser = Payer(factories.checkout(lead.checkout.merchant))
        remembered(browser, "07700 900457")
        browser.checkout = lead.checkout
        page = words(browser.get())
        assert "Is this still you?" in page and self.NOTICE in page

    def test_reads_no_such_notice_without_a_split_and_at_a_share(self, lead: Payer) -> None:
        assert self.NOTICE not in words(Payer(factories.checkout(lead.checkout.merchant)).get())
        assert self.NOTICE not in words(Mate(share(lead.checkout, 2)).get())


@pytest.mark.rule("pledge.held")
class TestAMate:
    def test_reads_what_happens_to_the_card(self, lead: Payer) -> None:
        made = Mate(share(lead.checkout, 2))
        page = plain(words(made.get()))
        assert "Are you in for £20.00?" in page and "No one has paid yet" in page
        assert "You are not charged on this page or the next." in page
        made.sign_in()
        card = plain(words(made.client.get(made.get("/card")["Location"])))
        assert "Your bank holds £20.00 on your card" in card and "I’m in for £20.00" in card
        assert "goes back to" not in card, "the lead has not paid"
        assert card.index("5555 5555 5555 4444") < card.index("4242 4242 4242 4242"), "the lead uses this one"

    def test_sees_the_pledge(self, finn: Mate) -> None:
        page = plain(words(finn.get()))
        assert "You’re in for £20.00" in page and "£20.00 is held on your Mastercard ending 4444." in page
        assert "Yes, withdraw" in page and "charged you" not in page
        assert "In since" in page and "1 of 2 mates is in" in page
        stranger = plain(words(Mate(finn.share).get()))
        assert "Someone is in for this share" in stranger and "4444" not in stranger

    @pytest.mark.rule("pledge.withdraw")
    def test_can_withdraw(self, finn: Mate) -> None:
        answer = finn.post("/withdraw")
        assert answer["Location"] == finn.path and finn.status() == "open"
        assert "Are you in for £20.00?" in plain(words(finn.get())) or finn.get().status_code == 303
        assert Operation.objects.filter(payment__subject=finn.share.pk, kind="void").exists()

    @pytest.mark.rule("pledge.withdraw")
    def test_reads_what_happens_before_using_another_card(self, finn: Mate) -> None:
        page = words(finn.get())
        assert len(re.findall('<details name="withdraw-ways"', page)) == 2, "at most one question is open"
        question = page.partition('id="another-card-details"')[2].partition("</details>")[0]
        said = "The hold on this card is released first. Until your other card is held, you’re not in."
        assert said in plain(question) and 'name="another"' in question.partition("</summary>")[2]
        assert "Use another card?" in question.partition("</summary>")[2]
        assert page.count('name="another"') == 1, "no other button gives up the card"

    @pytest.mark.rule("pledge.withdraw")
    def test_can_use_another_card(self, lead: Payer, finn: Mate) -> None:
        answer = finn.post("/withdraw", another="1")
        assert answer["Location"] == finn.path + "/card" and finn.status() == "open"
        page = plain(words(finn.client.get(finn.get("/card")["Location"])))
        assert "Choose another card" in page and "The hold of £20.00 on your card is released." in page
        assert "Once you are in Your bank holds £20.00 on the card that you enter here." in page
        assert "Your bank holds £20.00 on your card." not in page, "no card is held now"
        assert "left at" not in plain(words(lead.get()))
        finn.give_card("4242424242424242")
        assert finn.status() == "pledged" and "held on your Visa ending 4242" in plain(words(finn.get()))

    @pytest.mark.rule("pledge.withdraw")
    @pytest.mark.parametrize(
        ("number", "reason"),
        [
            (mates.CHALLENGED, "Lea is paying right now. You can no longer withdraw."),
            (
                "4242424242424242",
                "Lea’s card is held too. You can no longer withdraw. We take your share once Acme",
            ),
        ],
    )
    def test_cannot_withdraw_while_the_lead_pays(
        self, lead: Payer, finn: Mate, number: str, reason: str
    ) -> None:
        card = CardUse(bank.tokenise(subject=lead.checkout.pk, number=number))
        lead.checkout.refresh_from_db()
        authorizations.authorize(lead.checkout.pk, card=card, lead=lead.checkout.lead, cause=CAUSE)
        page = plain(words(finn.get()))
        assert reason in page and "Yes, withdraw" not in page
        for posted in ({}, {"another": "1"}):
            finn.post("/withdraw", **posted)
            assert finn.status() == "pledged"

    def test_another_person_cannot_withdraw(self, finn: Mate) -> None:
        Mate(finn.share).post("/withdraw")
        assert finn.status() == "pledged"

    def test_reads_that_the_shop_takes_no_payments_now(self, lead: Payer) -> None:
        operator_stops.suspend(lead.checkout.merchant, reason="test")
        page = plain(words(Mate(share(lead.checkout, 2)).get()))
        assert "can’t take payments right now" in page and "You have not been charged." in page
        assert "has paid" not in page
        assert "If Acme Tickets can take payments again by" in page and "this page lets you continue." in page
        assert "this page lets you continue." in plain(words(Guest(lead.checkout).get()))

    @pytest.mark.parametrize("end", ["decline", "keep"])
    def test_whose_share_has_ended_reads_on_every_page_that_nothing_was_charged(
        self, lead: Payer, end: str
    ) -> None:
        made = Mate(share(lead.checkout, 2))
        if end == "decline":
            made.post("/decline")
        else:
            PaymentRequest.objects.filter(pk=made.share.pk).update(status="cancelled", ended_at=clock.now())
        for _ in range(2):
            assert "You have not been charged." in plain(words(made.get()))
            card = CardUse(bank.tokenise(subject=lead.checkout.pk, number="4242424242424242"))
            lead.checkout.refresh_from_db()
            if lead.checkout.status == "created":
                authorizations.authorize(lead.checkout.pk, card=card, lead=lead.checkout.lead, cause=CAUSE)


class TestTheGroupLink:
    def test_asks_who_is_in(self, lead: Payer, finn: Mate) -> None:
        page = plain(words(Guest(lead.checkout).get()))
        assert "Lea is asking who’s in. Which share is yours?" in page and "Finn" in page
        assert "paid." not in page and "has the whole" not in page

    def test_leads_to_a_pledge(self, lead: Payer) -> None:
        guest = Guest(lead.checkout)
        guest.take(3, name="Sam")
        made = Mate(share(lead.checkout, 3))
        made.client, made.path = guest.client, f"{guest.path}/3"
        made.pay(mates.AMYS)
        assert made.status() == "pledged"
        assert guest.client.get(guest.path)["Location"] == f"{guest.path}/3"
        assert made.post("/withdraw", another="1")["Location"] == f"{guest.path}/3/card"
        assert share(lead.checkout, 3).is_kept(clock.now()), "nobody can take it while Sam changes the card"
        assert Guest(lead.checkout).take(3, name="Zoe").status_code == 409
        made.give_card(mates.AMYS)
        assert made.status() == "pledged"
        made.post("/withdraw")
        assert made.status() == "open" and not share(lead.checkout, 3).claim_digest

    def test_recognises_a_mate_who_comes_back_with_another_browser(self, lead: Payer) -> None:
        guest = Guest(lead.checkout)
        guest.take(3, name="Sam")
        made = Mate(share(lead.checkout, 3))
        made.client, made.path = guest.client, f"{guest.path}/3"
        made.pay(mates.AMYS)
        assert "That’s me" in words(Guest(lead.checkout).get())
        SmsMessage.objects.all().delete()  # otherwise the number must wait for its next code
        again = Mate(share(lead.checkout, 3))
        again.path = made.path
        assert again.get()["Location"].endswith("taken=3") and again.get("?sign_in=1").status_code == 200
        again.post("/phone", phone=FINN)
        again.post("/code", code=shown_code(again.get("?sign_in=1")))
        assert "You’re in for £30.00" in plain(words(again.get()))

    def test_can_be_shown_as_a_qr_code(self, lead: Payer) -> None:
        guest = Guest(lead.checkout)
        assert guest.client.get(f"{guest.path}/qr").status_code == 200

    def test_says_that_all_shares_are_taken_once_everyone_is_in(self, lead: Payer, finn: Mate) -> None:
        guest = Guest(lead.checkout)
        guest.take(3, name="Sam")
        assert "All shares are taken" in plain(words(Guest(lead.checkout).get()))
        PaymentRequest.objects.filter(pk=share(lead.checkout, 3).pk).update(
            status="cancelled", ended_at=clock.now()
        )
        assert "Everyone’s in" in plain(words(Guest(lead.checkout).get()))

    def test_still_opens_after_the_lead_has_changed(self, lead: Payer) -> None:
        guest = Guest(lead.checkout)
        Payer(lead.checkout).sign_in("07700 900457")
        answer = guest.get()
        page = plain(words(answer))
        assert answer.status_code == 200 and "Your mate is no longer asking for this" in page
        assert "Your mate’s order" in page and "You don’t need to pay anything." in page
        assert "£90.00" not in words(answer).split("</header>")[0]

    def test_is_closed_while_the_lead_pays(self, lead: Payer, finn: Mate) -> None:
        card = CardUse(bank.tokenise(subject=lead.checkout.pk, number="4242424242424242"))
        lead.checkout.refresh_from_db()
        authorizations.authorize(lead.checkout.pk, card=card, lead=lead.checkout.lead, cause=CAUSE)
        assert "Not open yet" in plain(words(Guest(lead.checkout).get()))

    def test_does_not_say_that_it_opens_again_if_everyone_is_in_while_the_lead_pays(
        self, lead: Payer, finn: Mate
    ) -> None:
        PaymentRequest.objects.filter(position=3).update(status="cancelled", ended_at=clock.now())
        card = CardUse(bank.tokenise(subject=lead.checkout.pk, number="4242424242424242"))
        lead.checkout.refresh_from_db()
        authorizations.authorize(lead.checkout.pk, card=card, lead=lead.checkout.lead, cause=CAUSE)
        page = plain(words(Guest(lead.checkout).get()))
        assert "Everyone’s in" in page and "Not open yet" not in page


@pytest.mark.rule("pledge.split_changes")
def test_an_open_card_page_never_charges_another_amount(lead: Payer) -> None:
    made = Mate(share(lead.checkout, 2))
    made.sign_in()
    page = made.get("/card")["Location"]
    assert "£20.00" in words(made.client.get(page))
    lead.client.post(f"/pay/split?id={lead.checkout.pk}", SPLIT | {"amount": ["60", "30"], "when": "first"})
    back = made.client.post(page, {"number": mates.FINNS, "expiry": "08 / 49", "code": "123"})
    made.client.get(back["Location"])
    assert made.status() == "open" and not Operation.objects.exists()


@pytest.mark.rule("pledge.split_changes")
def test_a_link_asks_for_the_new_amount_after_the_split_has_changed(lead: Payer, finn: Mate) -> None:
    changed = SPLIT | {"amount": ["25", "30"], "when": "first"}
    lead.client.post(f"/pay/split?id={lead.checkout.pk}", changed)
    assert finn.status() == "open" and finn.share.amount == 2500
    assert "Are you in for £25.00?" in plain(words(Mate(finn.share).get()))


@pytest.mark.rule("pledge.ends")
def test_another_lead_ends_the_pledges_and_the_old_link_says_so(lead: Payer, finn: Mate) -> None:
    other = Payer(lead.checkout)
    other.sign_in(FINN.replace("456", "457"))
    assert finn.status() == "cancelled" or PaymentRequest.every.get(pk=finn.share.pk).status == "cancelled"
    page = plain(words(Mate(finn.share).get()))
    assert "You have not been charged." in page
