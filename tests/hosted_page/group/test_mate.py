"""The pay link: what a mate sees and does."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from checkout import refunds, sharing, tasks, transitions
from checkout.models import Checkout, PaymentRequest
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.sms import outbox
from hosted_page.steps import codes
from payments.models import Operation, Payment
from payments.outside import inquiries
from payments.providers.sandbox import client, fault_injection
from tests import mates
from tests.factories import CAUSE, stop
from tests.hosted_page.test_views import Payer, words

pytestmark = pytest.mark.django_db
FINN = "07700 900456"
CHALLENGED = "4000002500003155"


class Mate:
    """A browser at a pay link."""

    def __init__(self, share: PaymentRequest) -> None:
        self.share, self.client = share, Client()
        self.path = f"/pay/share/{share.token}"

    def get(self, step: str = "") -> Any:
        return self.client.get(self.path + step)

    def post(self, step: str, **fields: str) -> Any:
        return self.client.post(self.path + step, fields)

    def sign_in(self, phone: str = FINN) -> None:
        self.post("/phone", phone=phone)
        self.post("/code", code=self.get().context["shown_code"])

    def pay(self, number: str = mates.FINNS) -> Any:
        """Sign in, give the bank a card, come back, and look."""
        self.sign_in()
        return self.give_card(number)

    def give_card(self, number: str = mates.FINNS) -> Any:
        card = {"number": number, "expiry": "08 / 49", "code": "123", "name": "Finn"}
        back = self.client.post(self.get("/card")["Location"], card)
        return self.client.get(back["Location"])

    def status(self) -> str:
        self.share.refresh_from_db()
        return self.share.status


@pytest.fixture
def lea(unpaid: Checkout) -> Payer:
    """She has asked Finn for £20.00, Amy for £30.00, and paid; the shop has captured."""
    payer = Payer(unpaid)
    payer.pay(split="own", name=["Finn", "Amy"], amount=["20", "30"], your_name="Lea")
    return payer


@pytest.fixture
def order(lea: Payer) -> Checkout:
    return transitions.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)


@pytest.fixture
def finn(order: Checkout) -> Mate:
    return Mate(order.payment_requests.get(position=2))


class TestTheLink:
    def test_says_who_asks_for_what_and_until_when(self, finn: Mate) -> None:
        page = words(finn.get())
        assert "Lea</bdi> asks you for" in page and "£20.00" in page and "Open until" in page
        assert "Lea’s order" in page and "Total, paid by Lea" in page

    def test_leads_from_phone_to_paid(self, finn: Mate, order: Checkout) -> None:
        assert finn.pay().status_code == 303
        assert "Paying your share" in words(finn.get()) or finn.status() == "paid"
        mates.pump(order.pk)
        page = words(finn.get())
        assert "Your share is paid" in page and "Mastercard ending 4444" in page
        assert mates.settled(finn.share) == "reimbursed"
        assert "Your share is paid" in words(finn.get())

    def test_shows_no_card_to_another_browser(self, finn: Mate, order: Checkout) -> None:
        finn.pay()
        mates.pump(order.pk)
        assert "4444" not in words(Mate(finn.share).get())

    @pytest.mark.rule("share.link")
    @pytest.mark.parametrize("token", ["x", "A" * 22, "%00", "a" * 5000, "..%2f"])
    def test_that_we_never_made_is_a_404(self, finn: Mate, token: str) -> None:
        assert Client().get(f"/pay/share/{token}").status_code == 404

    def test_before_the_capture_is_not_open(self, lea: Payer) -> None:
        page = Mate(lea.checkout.payment_requests.get(position=2)).get()
        assert "Not open yet" in words(page) and "not charged" in words(page)

    def test_is_declined_once_and_for_all(self, finn: Mate) -> None:
        for _ in range(2):
            assert finn.post("/decline").status_code == 303
        assert finn.status() == "declined" and "You said no" in words(finn.get())
        finn.post("/phone", phone=FINN)
        assert not SignInCode.objects.filter(subject=finn.share.pk).exists()

    def test_of_which_the_time_is_over_says_so(self, finn: Mate) -> None:
        PaymentRequest.objects.filter(pk=finn.share.pk).update(expires_at=timezone.now())
        assert "This link has ended" in words(finn.get()) and finn.status() == "expired"

    def test_that_the_lead_took_back_says_so(self, finn: Mate) -> None:
        sharing.cancel(finn.share.pk)
        assert "There is nothing to pay" in words(finn.get())

    def test_pauses_while_the_order_is_given_back(self, finn: Mate, order: Checkout) -> None:
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        assert "Nothing to pay now" in words(finn.get())
        assert mates.settled(finn.share) == "cancelled"
        assert "There is nothing to pay" in words(finn.get())

    def test_pauses_while_a_card_of_the_order_is_disputed(self, finn: Mate, order: Checkout) -> None:
        assert order.payment_id is not None
        client.ask("dispute", payment=order.payment_id)
        inquiries.open_about([order.payment_id])
        tasks.answer_inquiries()
        page = words(finn.get())
        assert "A bank is looking into this order" in page and "You are not charged" in page

    def test_tells_when_the_money_is_back(self, finn: Mate, order: Checkout) -> None:
        finn.pay()
        mates.settled(finn.share)
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        assert "Your £20.00 goes back to your Mastercard ending 4444" in words(finn.get())
        assert mates.settled(finn.share) == "refunded"
        assert "Your money is back" in words(finn.get()) and "Mastercard ending 4444" in words(finn.get())

    def test_without_a_name_asks_for_your_mate(self, finn: Mate, order: Checkout) -> None:
        assert order.lead
        order.lead.name = ""
        order.lead.save()
        assert "Your mate</bdi> asks you for" in words(finn.get())


class TestPaying:
    def test_with_a_declined_card_may_try_another(self, finn: Mate, order: Checkout) -> None:
        finn.pay("4000000000000002")
        assert finn.status() == "open"
        page = finn.client.get(finn.get("/card")["Location"])
        assert "Your bank declined this card." in words(page) and "Pay £20.00" in words(page)

    def test_with_the_card_of_the_order_is_told(self, finn: Mate, order: Checkout) -> None:
        finn.pay("4242424242424242")
        assert mates.settled(finn.share) == "open"
        page = finn.client.get(finn.get("/card")["Location"])
        assert "This card has paid the whole order already." in words(page)

    def test_as_the_lead_leads_to_the_order(self, finn: Mate, order: Checkout) -> None:
        SmsMessage.objects.update(created_at=timezone.now() - outbox.GAP)
        finn.sign_in("07700 900123")
        page = finn.get()
        assert "This is your own order" in words(page) and f"/pay?id={order.pk}" in words(page)
        assert finn.get("/card")["Location"] == finn.path
        assert not Payment.objects.filter(subject=finn.share.pk).exists()

    def test_twice_by_a_reload_is_once(self, finn: Mate, order: Checkout) -> None:
        finn.sign_in()
        card = {"number": mates.FINNS, "expiry": "08/49", "code": "123"}
        back = finn.client.post(finn.get("/card")["Location"], card)["Location"]
        for _ in range(3):
            assert finn.client.get(back)["Location"] == finn.path
        assert Payment.objects.filter(subject=finn.share.pk).count() == 1

    def test_with_a_token_of_another_share_pays_nothing(self, finn: Mate, order: Checkout) -> None:
        amy = Mate(order.payment_requests.get(position=3))
        amy.sign_in("07700 900457")
        finn.sign_in()
        card = {"number": mates.FINNS, "expiry": "08/49", "code": "123"}
        back: str = finn.client.post(finn.get("/card")["Location"], card)["Location"]
        stolen = back.replace(finn.share.token, amy.share.token)
        assert amy.client.get(stolen)["Location"] == amy.path
        assert not Payment.objects.filter(subject=amy.share.pk).exists()

    def test_is_confirmed_with_the_bank(self, finn: Mate, order: Checkout) -> None:
        to_bank = finn.pay(CHALLENGED)["Location"]
        page = words(finn.get())
        assert "Confirm with your bank" in page and "/bank/challenge/" in page
        assert "/bank/challenge/" not in words(Mate(finn.share).get())
        back = finn.client.post(to_bank, {"answer": "confirm"})["Location"]
        finn.client.get(back)
        mates.pump(order.pk)
        assert finn.status() == "paid"

    def test_with_another_card_instead_of_confirming(self, finn: Mate, order: Checkout) -> None:
        finn.pay(CHALLENGED)
        assert finn.post("/another-card")["Location"] == finn.path
        assert finn.status() == "open" and finn.get()["Location"] == f"{finn.path}/card"

    def test_that_the_bank_is_silent_about_is_told(self, finn: Mate, order: Checkout) -> None:
        fault_injection.set_fault(verb="authorize", mode="done_then_reset", times=1)
        finn.pay()
        assert "Checking with your bank" in words(finn.get())
        Operation.objects.filter(payment__subject=finn.share.pk).update(created_at="2020-01-01T00:00Z")
        assert "Your bank has not answered" in words(finn.get())

    def test_of_a_stopped_merchant_is_refused(self, finn: Mate, order: Checkout) -> None:
        finn.sign_in()
        stop(order.merchant)
        assert "takes no payments now" in words(finn.give_card())
        assert finn.status() == "open"


class TestTheLead:
    def test_sees_where_each_share_is(self, lea: Payer, finn: Mate, order: Checkout) -> None:
        finn.pay()
        assert mates.settled(finn.share) == "reimbursed"
        page = words(lea.get())
        assert "Back on your card" in page and "Not paid yet" in page and "£20.00</strong> of" in page
        amy = order.payment_requests.get(position=3)
        assert f"/pay/share/{amy.token}" in page and page.count("/qr.svg") == 1
        drawn = lea.client.get(f"/pay/share/{amy.token}/qr.svg")
        assert drawn["Content-Type"] == "image/svg+xml" and b'stroke="#000"' in drawn.content
        assert lea.client.get("/pay/share/x/qr.svg").status_code == 404
        assert finn.share.token not in page, "there is nothing to pay at Finn's link"

    def test_shows_the_links_to_nobody_else(self, lea: Payer, order: Checkout) -> None:
        page = words(Payer(order).get())
        assert "Confirmed and paid." in page and "/pay/share/" not in page and "Finn" not in page

    def test_signs_in_again_on_another_phone(self, order: Checkout) -> None:
        later = Payer(order)
        assert "Did you pay this?" in words(later.get())
        SmsMessage.objects.update(created_at=timezone.now() - outbox.GAP)
        code_page = later.client.get(later.post("/phone", phone="07700 900123")["Location"])
        assert "6-digit" in words(code_page)
        later.post("/code", code=code_page.context["shown_code"])
        assert words(later.get()).count("/pay/share/") > 1

    @pytest.mark.rule("sign_in.lead_returns")
    def test_is_the_only_one_who_gets_a_code_then(self, order: Checkout) -> None:
        stranger = Payer(order)
        code_page = stranger.client.get(stranger.post("/phone", phone=FINN)["Location"])
        assert "6-digit" in words(code_page) and code_page.context["shown_code"] == ""
        assert "/pay/share/" not in words(stranger.get())

    def test_can_come_back_whatever_others_have_asked_for(self, order: Checkout) -> None:
        stranger = Payer(order)
        for number in range(codes.CODES_PER_SUBJECT + 1):
            stranger.post("/phone", phone=f"07700 90020{number}")
        assert (
            SignInCode.objects.filter(phone__startswith="+4477009002").count() == codes.CODES_PER_SUBJECT + 1
        )
        later = Payer(order)
        SmsMessage.objects.update(created_at=timezone.now() - outbox.GAP)
        assert later.post("/phone", phone="07700 900123").status_code == 303

    def test_reads_that_each_card_gets_back_what_it_has_paid(
        self, lea: Payer, finn: Mate, order: Checkout
    ) -> None:
        finn.pay()
        assert mates.settled(finn.share) == "reimbursed"
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        assert "is giving back £90.00: to each card what was paid with it." in words(lea.get())
        assert mates.settled(finn.share) == "refunded"
        page = words(lea.get())
        assert "gave back £90.00: to each card what was paid with it." in page
        assert "The cards" in page and "Your card" not in page  # the picture of where the money is

    def test_is_told_what_is_not_done_without_a_sign_in(self, lea: Payer, finn: Mate) -> None:
        lea.client.cookies.clear()
        answer = lea.post("/cancel-share", share=str(finn.share.pk))
        assert answer.status_code == 403 and "Nothing was saved." in words(answer)
        assert "Sign in again" in words(answer)
        assert finn.status() == "open"

    def test_sees_no_links_before_the_capture(self, lea: Payer) -> None:
        page = words(lea.get())
        assert "Starts when confirmed" in page and "/pay/share/" not in page

    @pytest.mark.rule("share.ended_once")
    def test_may_keep_a_share(self, lea: Payer, finn: Mate) -> None:
        assert lea.post("/cancel-share", share=str(finn.share.pk)).status_code == 303
        assert finn.status() == "cancelled" and "Stays with you" in words(lea.get())

    def test_keeps_no_share_that_is_paid_or_not_theirs(self, lea: Payer, finn: Mate, order: Checkout) -> None:
        finn.pay()
        mates.settled(finn.share)
        amy = order.payment_requests.get(position=3)
        lea.post("/cancel-share", share=str(finn.share.pk))
        lea.post("/cancel-share", share="x")
        Payer(order).post("/cancel-share", share=str(amy.pk))
        finn.client.post(f"/pay/cancel-share?id={order.pk}", {"share": str(amy.pk)})
        assert (finn.status(), mates.settled(amy)) == ("reimbursed", "open")


class TestSigningIn:
    def test_has_codes_of_its_own(self, finn: Mate, order: Checkout) -> None:
        amy = Mate(order.payment_requests.get(position=3))
        finn.post("/phone", phone=FINN)
        code: str = finn.get().context["shown_code"]
        amy.client.cookies = finn.client.cookies
        amy.post("/code", code=code)
        assert amy.get("/card")["Location"] == amy.path and "asks you for" in words(amy.get())

    def test_sends_five_codes_at_most(self, finn: Mate) -> None:
        for _ in range(codes.CODES_PER_SUBJECT):
            finn.post("/phone", phone=FINN)
            SmsMessage.objects.update(created_at=timezone.now() - outbox.GAP)
        refused = finn.post("/resend")
        assert refused.status_code == 422 and "all the codes we can for today" in words(refused)
        SignInCode.objects.update(created_at=timezone.now() - codes.CODES_WITHIN)
        SmsMessage.objects.update(created_at=timezone.now() - codes.CODES_WITHIN)
        assert finn.post("/phone", phone=FINN).status_code == 303

    def test_asks_again_for_what_is_no_number(self, finn: Mate) -> None:
        refused = finn.post("/phone", phone="12")
        assert refused.status_code == 422 and "Enter a mobile number" in words(refused)
        assert "asks you for" in words(refused)

    def test_may_change_the_number(self, finn: Mate) -> None:
        finn.post("/phone", phone=FINN)
        change = finn.get().context["change_url"]
        assert change == f"{finn.path}?change=1" and "Your mobile number" in words(finn.client.get(change))


@pytest.mark.rule("share.privacy")
def test_a_mate_sees_nothing_of_the_lead_or_of_other_mates(finn: Mate) -> None:
    page = words(finn.get())
    assert "900123" not in page and "4242" not in page and "Amy" not in page
