from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from checkout import refunds, sharing, tasks, transitions
from checkout.models import Checkout
from hosted_page import payer
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.sms import outbox
from payments.models import Operation, Payment
from tests import factories
from tests.factories import CAUSE, make_late

pytestmark = pytest.mark.django_db
PHONE = "07700 900123"


class Payer:
    """A browser at the page of one checkout."""

    def __init__(self, checkout: Checkout) -> None:
        self.checkout, self.client = checkout, Client()

    def get(self, path: str = "", **query: str) -> Any:
        return self.client.get(f"/pay{path}", {"id": str(self.checkout.pk), **query})

    def post(self, path: str, **fields: str) -> Any:
        return self.client.post(f"/pay{path}?id={self.checkout.pk}", fields)

    def code(self) -> str:
        """The code that the page shows."""
        shown: str = self.get().context["shown_code"]
        return shown

    def sign_in(self, phone: str = PHONE) -> None:
        self.post("/phone", phone=phone)
        self.post("/code", code=self.code())

    def pay(self, number: str = "4242424242424242", **split: Any) -> Any:
        """Sign in, take all of it or split it, give the bank a card, and come back."""
        self.sign_in()
        self.client.post(f"/pay/split?id={self.checkout.pk}", split or {"split": "all"})
        bank = self.get("/card")["Location"]
        card = {"number": number, "expiry": "08 / 49", "code": "123", "name": "Lea"}
        back = self.client.post(bank, card)
        return self.client.get(back["Location"])


@pytest.fixture
def lea(unpaid: Checkout) -> Payer:
    return Payer(unpaid)


def words(answer: Any) -> str:
    text: str = answer.content.decode()
    return text


class TestTheJourney:
    @pytest.mark.rule("pay.held", "sign_in.code")
    def test_leads_from_phone_to_held(self, lea: Payer) -> None:
        assert "Your mobile number" in words(lea.get())
        lea.post("/phone", phone=PHONE)
        assert "6-digit" in words(lea.get()) and "0123" in words(lea.get())
        lea.post("/code", code=f" {lea.code()[:3]} {lea.code()[3:]}")
        assert "Who’s in on this?" in words(lea.get("/split"))
        assert lea.post("/split", split="equal", people="4").status_code == 303
        lea.checkout.refresh_from_db()
        assert [share.amount for share in lea.checkout.payment_requests.all()] == [2250] * 3
        card_page = lea.client.get(lea.get("/card")["Location"])
        assert "Pay £90.00" in words(card_page) and "Your 3 mates’ shares" in words(card_page)
        assert "Held, not taken yet" in words(self.paid(lea, card_page))

    def paid(self, lea: Payer, card_page: Any) -> Any:
        card = {"number": "4242 4242 4242 4242", "expiry": "08/49", "code": "123"}
        back = lea.client.post(card_page.request["PATH_INFO"], card)
        assert lea.client.get(back["Location"]).status_code == 303
        return lea.get()

    def test_a_declined_card_may_be_followed_by_another(self, lea: Payer) -> None:
        lea.pay("4000000000009995")
        again = lea.client.get(lea.get("/card")["Location"])
        assert "There is not enough money on this card." in words(again)
        assert "No money was taken." in words(again)
        back = lea.client.post(
            again.request["PATH_INFO"], {"number": "5555555555554444", "expiry": "0149", "code": "1234"}
        )
        lea.client.get(back["Location"])
        assert "your Mastercard ending 4444" in words(lea.get())

    @pytest.mark.rule("pay.no_card_data")
    def test_the_card_number_is_never_put_back_or_stored(self, lea: Payer) -> None:
        lea.sign_in()
        lea.post("/split", split="all")
        bank = lea.get("/card")["Location"]
        wrong = lea.client.post(bank, {"number": "4242424242424242", "expiry": "01/20", "code": "987"})
        assert wrong.status_code == 422 and "This card has expired." in words(wrong)
        assert "4242424242424242" not in words(wrong) and "987" not in words(wrong).split("csrf")[0]

    @pytest.mark.rule("pay.token_once")
    def test_a_token_is_good_once_and_for_this_person_alone(self, lea: Payer) -> None:
        lea.sign_in()
        lea.post("/split", split="all")
        back = lea.client.post(
            lea.get("/card")["Location"], {"number": "4242424242424242", "expiry": "0149", "code": "123"}
        )
        stranger = Client()
        assert stranger.get(back["Location"])["Location"] == f"/pay?id={lea.checkout.pk}"
        assert not Operation.objects.exists()
        lea.client.get(back["Location"])
        lea.client.get(back["Location"])
        assert Payment.objects.count() == 1

    @pytest.mark.rule("pay.lead")
    def test_the_one_who_signs_in_last_leads(self, lea: Payer) -> None:
        lea.sign_in()
        SmsMessage.objects.update(created_at=timezone.now() - outbox.GAP)
        finn = Payer(lea.checkout)
        finn.sign_in("07700 900456")
        assert "Somebody else is paying now" in words(lea.get())
        assert "Who’s in on this?" in words(finn.get("/split"))

    @pytest.mark.rule("sign_in.session")
    def test_fifteen_minutes_without_a_move_sign_out(
        self, lea: Payer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lea.sign_in()
        monkeypatch.setattr(payer, "LIFE", -1)
        assert "Your mobile number" in words(lea.get())


class TestSignIn:
    @pytest.mark.rule("sign_in.tries")
    def test_five_wrong_tries_end_a_code(self, lea: Payer) -> None:
        lea.post("/phone", phone=PHONE)
        right = lea.code()
        wrong = f"{(int(right) + 1) % 10**6:06d}"
        for left in ("4 tries", "3 tries", "2 tries", "1 try"):
            assert f"You have {left} left" in words(lea.post("/code", code=wrong))
        assert "no longer works" in words(lea.post("/code", code=wrong))
        lea.post("/code", code=right)
        lea.checkout.refresh_from_db()
        assert lea.checkout.lead is None

    @pytest.mark.rule("sign_in.bound")
    def test_a_code_is_good_in_its_own_browser_alone(self, lea: Payer) -> None:
        lea.post("/phone", phone=PHONE)
        other = Payer(lea.checkout)
        other.post("/code", code=lea.code())
        assert "Your mobile number" in words(other.get())

    @pytest.mark.rule("sign_in.limits")
    def test_half_a_minute_lies_between_two_codes(self, lea: Payer) -> None:
        lea.post("/phone", phone=PHONE)
        assert "Wait half a minute" in words(lea.post("/resend"))
        assert SignInCode.objects.count() == 1

    @pytest.mark.rule("sign_in.limits")
    def test_a_checkout_gets_five_codes(self, lea: Payer) -> None:
        for number in range(6):
            lea.post("/phone", phone=f"07700 90012{number}")
        assert SignInCode.objects.count() == 5
        assert "all the codes we can" in words(lea.post("/phone", phone="07700 900199"))

    @pytest.mark.rule("sign_in.limits")
    def test_a_number_gets_five_codes_an_hour(self, lea: Payer) -> None:
        for _ in range(6):
            Payer(factories.checkout(lea.checkout.merchant)).post("/phone", phone=PHONE)
            SmsMessage.objects.update(created_at=timezone.now() - outbox.GAP)
        assert SignInCode.objects.count() == 5

    @pytest.mark.rule("sign_in.code")
    def test_only_a_keyed_hash_is_kept(self, lea: Payer) -> None:
        lea.post("/phone", phone=PHONE)
        assert lea.code() not in str(SignInCode.objects.values().get())


@pytest.mark.rule("pay.honest_page")
class TestEveryStateHasAnHonestPage:
    def test_held(self, lea: Payer) -> None:
        lea.pay()
        page = words(lea.get())
        assert "Held, not taken yet" in page and "your Visa ending 4242" in page and "hx-get" in page

    def test_confirmed(self, lea: Payer) -> None:
        lea.pay()
        transitions.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        page = words(lea.get())
        assert "Confirmed and paid." in page and lea.checkout.return_url in page

    def test_released_by_time(self, lea: Payer) -> None:
        lea.pay()
        lea.checkout.refresh_from_db()
        make_late(lea.checkout)
        page = words(lea.get())
        assert "Releasing. Nothing was taken." in page and "is being released" in page and "hx-get" in page
        tasks.finish_operations()
        page = words(lea.get())
        assert "Released. Nothing was taken." in page and "did not confirm in time" in page
        assert "is no longer held on your Visa ending 4242" in page and "hx-get" not in page

    def test_released_by_the_shop(self, lea: Payer) -> None:
        lea.pay()
        transitions.cancel(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        assert "has cancelled this order" in words(lea.get())

    def test_cancelled_before_payment(self, lea: Payer) -> None:
        transitions.cancel(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        assert "You paid nothing, and nothing is held" in words(lea.get())

    def test_expired(self, lea: Payer) -> None:
        make_late(lea.checkout)
        assert "This order has expired" in words(lea.get())

    def test_going_back(self, lea: Payer) -> None:
        lea.pay()
        transitions.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        refunds.accept(lea.checkout.merchant, lea.checkout.pk, ref="r", cause=CAUSE)
        assert "Your money is going back" in words(lea.get())

    def test_in_doubt(self, lea: Payer) -> None:
        lea.pay()
        Operation.objects.update(state="unknown", ended_at=None)
        assert "Please don’t pay again." in words(lea.get())

    def test_a_stranger_with_the_link_sees_no_card(self, lea: Payer) -> None:
        lea.pay()
        page = words(Payer(lea.checkout).get())
        assert "Held, not taken yet" in page and "4242" not in page


class TestThePagesGuards:
    @pytest.mark.rule("pay.return", "secret.csp")
    def test_forms_may_lead_to_this_checkouts_shop_alone(self, lea: Payer) -> None:
        policy = lea.get()["Content-Security-Policy"]
        directives = {name: set(rest) for name, *rest in (part.split() for part in policy.split(";"))}
        assert directives["form-action"] == {"'self'", "http://127.0.0.1:8000", "https://shop.example"}
        assert (directives["script-src"], directives["default-src"]) == ({"'self'"}, {"'none'"})

    @pytest.mark.rule("secret.csp")
    def test_a_post_without_its_token_is_refused(self, lea: Payer) -> None:
        strict = Client(enforce_csrf_checks=True)
        assert strict.post(f"/pay/phone?id={lea.checkout.pk}", {"phone": PHONE}).status_code == 403
        assert not SignInCode.objects.exists()

    @pytest.mark.rule("pay.return")
    def test_cancelling_leads_back_to_the_shop_and_leaves_it_payable(self, lea: Payer) -> None:
        assert lea.post("/cancel")["Location"] == lea.checkout.cancel_url
        lea.checkout.refresh_from_db()
        assert lea.checkout.status == "created"

    def test_no_step_can_be_skipped(self, lea: Payer) -> None:
        for path in ("/split", "/card"):
            assert lea.get(path)["Location"] == f"/pay?id={lea.checkout.pk}"

    def test_a_split_is_between_people_who_pay_something(self, lea: Payer) -> None:
        lea.sign_in()
        for people in ("1", "21", "-3", "", "many"):
            assert lea.post("/split", split="equal", people=people).status_code == 422
        lea.checkout.refresh_from_db()
        assert lea.checkout.people is None

    @pytest.mark.rule("split.until_card")
    def test_who_pays_is_settled_once_it_is_held(self, held: Checkout) -> None:
        with pytest.raises(transitions.NotPayable):
            sharing.split_equally(held.pk, 2)

    @pytest.mark.parametrize("query", ["", "?id=", "?id=abc", "?id=019f8b6e-0000-7000-8000-000000000000"])
    def test_an_unknown_order_is_a_404_page(self, query: str, db: None) -> None:
        answer = Client().get(f"/pay{query}")
        assert answer.status_code == 404 and "<h1" in words(answer)

    @pytest.mark.rule("pay.one_hold")
    def test_a_double_tap_on_pay_holds_once(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        pay(unpaid)
        with pytest.raises(transitions.NotPayable):
            pay(unpaid)
        assert Payment.objects.count() == 1


@pytest.mark.rule("pay.declines")
class TestDeclinedCards:
    DECLINED = "4000000000000002"

    def try_card(self, lea: Payer, number: str) -> Any:
        bank = lea.get("/card")
        if bank.status_code != 302:
            return bank
        back = lea.client.post(bank["Location"], {"number": number, "expiry": "08 / 49", "code": "123"})
        return lea.client.get(back["Location"])

    def test_may_be_followed_by_another_five_times_an_hour(self, lea: Payer) -> None:
        lea.pay(self.DECLINED)
        bank = lea.get("/card")["Location"]
        for _ in range(4):
            assert self.try_card(lea, self.DECLINED).status_code == 303
        refused = self.try_card(lea, "4242424242424242")
        assert refused.status_code == 429 and "Too many cards were declined" in words(refused)
        assert "No money was taken." in words(refused) and "Cancel and go back" in words(refused)
        assert "order again at the shop" in words(refused), "in an hour it has expired"
        Checkout.objects.update(payable_until=timezone.now() + timedelta(hours=2))
        assert "come back in an hour" in words(self.try_card(lea, "4242424242424242"))
        opened_before = lea.client.post(
            bank, {"number": "4242424242424242", "expiry": "08 / 49", "code": "123"}
        )
        assert lea.client.get(opened_before["Location"]).status_code == 429
        assert Checkout.objects.get(pk=lea.checkout.pk).status == "created"
        Payment.objects.update(created_at=timezone.now() - timedelta(hours=1, minutes=1))
        assert self.try_card(lea, "4242424242424242").status_code == 303
        assert "Held, not taken yet" in words(lea.get())

    def test_that_the_payer_did_not_confirm_does_not_count(self, lea: Payer) -> None:
        lea.pay(self.DECLINED)
        Payment.objects.update(decline_reason="challenge_failed")
        for _ in range(4):
            self.try_card(lea, self.DECLINED)
        assert lea.get("/card").status_code == 302
