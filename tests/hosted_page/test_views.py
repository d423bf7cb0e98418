import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from checkout import authorizations, captures, current_checkouts, mate_shares
from checkout.models import Checkout
from hosted_page import payer
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.sms import limits
from payments.models import Operation, Payment
from payments.providers.sandbox.adapter import SandboxProvider
from tests.factories import CAUSE
from tests.hosted_page.browsers import PHONE, Payer, words

pytestmark = pytest.mark.django_db


def reload_address(answer: Any) -> str:
    """Return the address that Back and Reload open after a form was sent, "" if the page sets no such address."""
    found = re.search(r'<meta name="reload" content="([^"]*)">', words(answer))
    return found[1] if found else ""


class TestAnswersToForms:
    def test_name_the_page_that_back_and_reload_open(self, lea: Payer) -> None:
        assert reload_address(lea.get()) == ""
        order = f"/pay?id={lea.checkout.pk}"
        assert reload_address(lea.post("/phone", phone="12")) == order
        lea.post("/phone", phone=PHONE)
        assert reload_address(lea.post("/code", code="1")) == order
        lea.post("/code", code=lea.code())
        assert reload_address(lea.get("/split")) == ""
        assert reload_address(lea.post("/split", split="equal")) == f"/pay/split?id={lea.checkout.pk}"
        lea.post("/split", split="all")
        card_page = lea.get("/card")["Location"]
        assert reload_address(lea.client.get(card_page)) == ""
        assert card_page.endswith(reload_address(lea.client.post(card_page, {"number": "1"})))


class TestTheJourney:
    @pytest.mark.rule("pay.held", "sign_in.code")
    def test_leads_from_phone_to_held(self, lea: Payer) -> None:
        assert "Your mobile number" in words(lea.get())
        lea.post("/phone", phone=PHONE)
        assert "6-digit" in words(lea.get()) and "0123" in words(lea.get())
        lea.post("/code", code=f" {lea.code()[:3]} {lea.code()[3:]}")
        assert "Who’s in on this?" in words(lea.get("/split"))
        assert lea.post("/split", split="equal", people="4", your_name="Lea").status_code == 303
        lea.checkout.refresh_from_db()
        assert [share.amount for share in lea.checkout.payment_requests.all()] == [2250] * 3
        card_page = lea.client.get(lea.get("/card")["Location"])
        assert "Pay £90.00" in words(card_page) and "Goes back as your 3 mates pay" in words(card_page)
        assert "Held, not taken yet" in words(self.paid(lea, card_page))

    def paid(self, lea: Payer, card_page: Any) -> Any:
        card = {"number": "4242 4242 4242 4242", "expiry": "08/49", "code": "123"}
        back = lea.client.post(card_page.request["PATH_INFO"], card)
        assert lea.client.get(back["Location"]).status_code == 303
        return lea.get()

    def test_a_declined_card_can_be_followed_by_another(self, lea: Payer) -> None:
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
        form = re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", words(wrong).partition("<main")[2])
        assert 'name="code"' in form and "4242424242424242" not in form and "987" not in form

    @pytest.mark.rule("pay.token_once")
    def test_a_card_token_works_once_and_only_for_this_payer(self, lea: Payer) -> None:
        lea.sign_in()
        lea.post("/split", split="all")
        back = lea.client.post(
            lea.get("/card")["Location"], {"number": "4242424242424242", "expiry": "0149", "code": "123"}
        )
        stranger = Client()
        refused = stranger.get(back["Location"])
        assert refused.status_code == 403 and "You have not been charged." in words(refused)
        assert not Operation.objects.exists()
        lea.client.get(back["Location"])
        lea.client.get(back["Location"])
        assert Payment.objects.count() == 1

    @pytest.mark.rule("pay.lead")
    def test_the_last_person_to_sign_in_is_the_lead(self, lea: Payer) -> None:
        lea.sign_in()
        SmsMessage.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        finn = Payer(lea.checkout)
        finn.sign_in("07700 900456")
        page = words(lea.get())
        assert "Someone else has signed in to pay" in page and "nothing is held on your card" in page
        assert "To pay yourself, sign in again." in page and f'href="{lea.checkout.cancel_url}"' in page
        assert "Who’s in on this?" in words(finn.get("/split"))
        finn.post("/split", split="equal", people="2", your_name="Finn")
        assert "To pay yourself, sign in again. Their split then ends." in words(lea.get())

    @pytest.mark.rule("sign_in.session")
    def test_fifteen_idle_minutes_sign_out(self, lea: Payer, monkeypatch: pytest.MonkeyPatch) -> None:
        lea.sign_in()
        monkeypatch.setattr(payer, "LIFE", -1)
        assert "Your mobile number" in words(lea.get())


class TestThePagesGuards:
    @pytest.mark.rule("pay.return", "secret.csp")
    def test_forms_can_redirect_only_to_this_checkouts_shop(self, lea: Payer) -> None:
        policy = lea.get()["Content-Security-Policy"]
        directives = {name: set(rest) for name, *rest in (part.split() for part in policy.split(";"))}
        assert directives["form-action"] == {"'self'", "http://127.0.0.1:8000", "https://shop.example"}
        assert (directives["script-src"], directives["default-src"]) == ({"'self'"}, {"'none'"})

    @pytest.mark.rule("secret.csp")
    def test_forms_can_redirect_to_the_origin_of_the_providers_card_page(
        self, lea: Payer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The page's policy allows forms to redirect to the origin of the provider's card page.

        Otherwise, Chromium would block the redirect.
        """
        monkeypatch.setattr(SandboxProvider, "page_origins", ("https://cards.example",))
        first = lea.get()
        lea.sign_in()
        for page in (first, lea.get("/split")):
            (forms,) = [part for part in page["Content-Security-Policy"].split(";") if "form-action" in part]
            assert "https://cards.example" in forms.split()

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

    def test_a_split_needs_two_to_twenty_people(self, lea: Payer) -> None:
        lea.sign_in()
        for people in ("1", "21", "-3", "", "many"):
            assert lea.post("/split", split="equal", people=people).status_code == 422
        lea.checkout.refresh_from_db()
        assert lea.checkout.people is None

    @pytest.mark.rule("split.until_card")
    def test_a_held_order_cannot_be_split(self, held: Checkout) -> None:
        with pytest.raises(authorizations.NotPayable):
            mate_shares.split_equally(held.pk, 2)

    @pytest.mark.parametrize("query", ["", "?id=", "?id=abc", "?id=019f8b6e-0000-7000-8000-000000000000"])
    def test_an_unknown_order_is_a_404_page(self, query: str, db: None) -> None:
        answer = Client().get(f"/pay{query}")
        assert answer.status_code == 404 and "<h1" in words(answer)

    @pytest.mark.rule("pay.one_hold")
    def test_a_double_tap_on_pay_holds_once(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        pay(unpaid)
        with pytest.raises(authorizations.NotPayable):
            pay(unpaid)
        assert Payment.objects.count() == 1


class TestCapturedDuringTheRequest:
    """A page reads the order, and then the shares. Between these two queries, another process captures the order."""

    @pytest.fixture
    def split(self, lea: Payer, monkeypatch: pytest.MonkeyPatch) -> Payer:
        lea.pay(split="equal", people="3", your_name="Lea")
        assert "Held, not taken yet" in words(lea.get())
        checkout, read = Checkout.objects.get(pk=lea.checkout.pk), current_checkouts.shares_of

        def captured_first(found: Checkout) -> Any:
            captures.capture(checkout.merchant, checkout.pk, cause=CAUSE)
            return read(found)

        monkeypatch.setattr(current_checkouts, "shares_of", captured_first)
        return lea

    @pytest.mark.rule("pay.honest_page")
    def test_redirects_to_the_current_state(self, split: Payer) -> None:
        answer = split.get()
        assert (answer.status_code, answer["Location"]) == (303, f"/pay?id={split.checkout.pk}")
        assert "You’re covering £90.00 for now" in words(split.get())

    def test_reloads_an_open_page(self, split: Payer) -> None:
        answer = split.client.get(f"/pay?id={split.checkout.pk}", headers={"HX-Request": "true"})
        assert (answer.status_code, answer["HX-Refresh"]) == (200, "true")
