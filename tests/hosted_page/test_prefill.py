"""The pages of a payer whose phone number, name or locale the merchant has sent with the order."""

from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from checkout import captures
from checkout.models import Checkout, Customer, Prefill
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.sms import limits
from hosted_page.steps import codes
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer, shown_code, words

pytestmark = pytest.mark.django_db
LEA = {"phone": "+447700900123", "name": "Lea Fontaine"}
WHOLE = ("7700900123", "7700 900123", "Fontaine")
IS_IT, OTHER, FRENCH_CODE = "Is this your number?", "07700 900999", "est votre code pour"
CARD = {"number": "4242424242424242", "expiry": "08/49", "code": "123"}


@pytest.fixture
def lea(acme: Merchant) -> Payer:
    return at_order(acme, LEA)


def at_order(acme: Merchant, customer: dict[str, str]) -> Payer:
    return Payer(factories.checkout(acme, customer=customer))


def tells_nothing(*answers: Any) -> None:
    for answer in answers:
        told = words(answer) + str(answer.headers) + str(answer.cookies)
        assert not [word for word in WHOLE if word in told]


def prove(payer: Payer) -> None:
    payer.post("/prefilled")
    payer.post("/code", code=payer.code())


def wait() -> None:
    """Make the sent texts so old that another text can be requested."""
    SmsMessage.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)


class TestBeforeTheCode:
    @pytest.mark.rule("prefill.masked")
    def test_only_four_digits_are_shown(self, lea: Payer) -> None:
        page = lea.get()
        assert IS_IT in words(page) and "•••• 0123" in words(page) and "Text me a code" in words(page)
        assert f'href="/pay?id={lea.checkout.pk}&amp;change=1"' in words(page)
        tells_nothing(page, lea.get("/split"), lea.get("/card"), lea.post("/prefilled"), lea.get())
        assert "•••• 0123" in words(lea.get()) and "6-digit" in words(lea.get())
        tells_nothing(
            lea.post("/resend"), lea.post("/code", code="1"), lea.post("/split"), lea.get(change="1")
        )

    @pytest.mark.rule("prefill.masked")
    def test_no_text_is_sent_before_the_button_is_pressed(self, lea: Payer) -> None:
        lea.get()
        assert lea.get("/prefilled").status_code == 405
        assert not SmsMessage.objects.exists() and not SignInCode.objects.exists()

    @pytest.mark.rule("prefill.masked")
    def test_another_number_can_be_typed(self, lea: Payer) -> None:
        page = lea.get(change="1")
        assert "Your mobile number" in words(page) and 'value=""' in words(page)
        lea.sign_in(OTHER)
        lea.checkout.refresh_from_db()
        assert lea.checkout.lead and lea.checkout.lead.phone == "+447700900999"

    @pytest.mark.rule("prefill.masked", "prefill.code")
    def test_no_refusal_reveals_the_number(self, lea: Payer) -> None:
        lea.post("/prefilled")
        again = lea.post("/prefilled")
        assert again.status_code == 422 and "Wait 30 seconds" in words(again)
        stranger = Payer(lea.checkout)
        refused = stranger.post("/prefilled")
        assert refused.status_code == 422
        page = words(refused)
        assert "A code was requested just now" in page and "data-resend-in" in page
        assert "No text was sent. The code is shown on the page where it was requested." in page
        assert page.count("ask for a new code") == 1 and 'role="alert"' not in page
        assert "button-main" not in words(refused), "it would fail"
        tells_nothing(again, refused, stranger.get(), stranger.post("/resend"))

    @pytest.mark.rule("prefill.masked")
    def test_a_code_that_expires_during_a_resend_does_not_reveal_the_number(
        self, lea: Payer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lea.post("/prefilled")
        found = iter([codes.waiting_code(lea.checkout.pk, lea.client.cookies["payer_browser"].value), None])
        monkeypatch.setattr(codes, "waiting_code", lambda *_: next(found))
        refused = lea.post("/resend")
        assert refused.status_code == 422
        tells_nothing(refused)

    @pytest.mark.rule("prefill.masked")
    def test_a_code_tried_too_often_leads_back_to_the_digits(self, lea: Payer) -> None:
        lea.post("/prefilled")
        wrong = f"{(int(lea.code()) + 1) % 10**6:06d}"
        answers = [lea.post("/code", code=wrong) for _ in range(5)]
        page = words(answers[-1])
        assert answers[-1].status_code == 422 and IS_IT in page
        assert 'class="notice tone-held"' in page and "That code no longer works" in page
        assert "Ask for a new code." in page and "Enter your number again" not in page
        tells_nothing(*answers)

    @pytest.mark.rule("prefill.masked")
    def test_an_order_without_a_number_asks_for_one(self, acme: Merchant) -> None:
        for customer in ({"name": "Lea Fontaine"}, {"locale": "en"}, {}):
            page = at_order(acme, customer).get()
            assert "Your mobile number" in words(page)
            tells_nothing(page)


@pytest.mark.rule("prefill.code")
class TestTheCode:
    def test_is_sent_to_the_number_and_signs_in(self, lea: Payer) -> None:
        assert lea.post("/prefilled")["Location"] == f"/pay?id={lea.checkout.pk}"
        assert SmsMessage.objects.get().phone == LEA["phone"]
        lea.post("/code", code=lea.code())
        lea.checkout.refresh_from_db()
        assert lea.checkout.lead and lea.checkout.lead.phone == LEA["phone"]

    def test_counts_like_a_code_for_a_typed_number(self, lea: Payer) -> None:
        for _ in range(7):
            Payer(lea.checkout).post("/prefilled")
            wait()
        assert SignInCode.objects.count() == 5
        assert "cannot send more codes for this link" in words(
            Payer(lea.checkout).post("/phone", phone=OTHER)
        )

    def test_is_limited_to_five_an_hour_for_a_number_over_all_orders(self, acme: Merchant) -> None:
        for _ in range(7):
            refused = at_order(acme, LEA).post("/prefilled")
            wait()
        assert SmsMessage.objects.count() == 5
        assert "cannot send more texts to this number" in words(refused)
        tells_nothing(refused)

    def test_is_not_sent_while_the_merchant_is_stopped(self, acme: Merchant, lea: Payer) -> None:
        factories.stop(acme)
        assert lea.post("/prefilled").status_code == 303
        assert "can’t take payments right now" in words(lea.get())
        assert not SmsMessage.objects.exists()

    @pytest.mark.parametrize("status", ["authorized", "captured", "voided", "expired"])
    def test_is_not_sent_once_the_order_cannot_be_paid(self, status: str, at: Any, unpaid: Checkout) -> None:
        Prefill.objects.create(checkout=unpaid, **LEA)
        at(status)
        late = Payer(unpaid)
        assert late.post("/prefilled").status_code == 303
        assert not SmsMessage.objects.exists()
        tells_nothing(late.get())

    def test_is_not_for_mates(self, lea: Payer) -> None:
        lea.pay(split="own", name=["Finn"], amount=["20"], your_name="Lea")
        captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        finn = Mate(lea.checkout.payment_requests.get())
        assert IS_IT not in words(finn.get()) and finn.post("/prefilled").status_code == 404

    def test_is_sent_only_for_an_order_with_a_number(
        self, acme: Merchant, lea: Payer, unpaid: Checkout
    ) -> None:
        """The service sends no text for an order without a number, even if another order has a number."""
        assert Payer(unpaid).post("/prefilled")["Location"] == f"/pay?id={unpaid.pk}"
        assert not SmsMessage.objects.exists()

    def test_cannot_be_requested_from_another_site(self, lea: Payer) -> None:
        strict = Client(enforce_csrf_checks=True)
        assert strict.post(f"/pay/prefilled?id={lea.checkout.pk}").status_code == 403


@pytest.mark.rule("prefill.name")
class TestTheName:
    def test_is_filled_in_after_the_code(self, lea: Payer) -> None:
        prove(lea)
        assert 'name="your_name"' in words(lea.get("/split"))
        assert 'value="Lea Fontaine"' in words(lea.get("/split"))
        assert not Customer.objects.get().name, "it is theirs once they have sent it"

    def test_is_not_filled_in_for_another_number(self, lea: Payer) -> None:
        lea.sign_in(OTHER)
        tells_nothing(lea.get("/split"))

    def test_is_filled_in_for_any_number_if_none_was_sent(self, acme: Merchant) -> None:
        payer = at_order(acme, {"name": "Lea Fontaine"})
        tells_nothing(payer.get())
        payer.sign_in(OTHER)
        assert 'value="Lea Fontaine"' in words(payer.get("/split"))

    def test_is_cut_to_the_maximum_length(self, acme: Merchant) -> None:
        payer = at_order(acme, {"name": "L" * 255})
        payer.sign_in()
        assert f'value="{"L" * 30}"' in words(payer.get("/split"))

    def test_is_replaced_by_the_customers_own_name(self, lea: Payer) -> None:
        Customer.objects.create(phone=LEA["phone"], name="Lulu")
        prove(lea)
        assert 'value="Lulu"' in words(lea.get("/split")) and "Fontaine" not in words(lea.get("/split"))

    def test_is_not_restored_after_the_payer_cleared_it(self, lea: Payer) -> None:
        prove(lea)
        page = lea.post("/split", split="equal", people="3", your_name="", show="1")
        assert "Fontaine" not in words(page)

    def test_is_in_the_opt_in_box_of_the_payer(self, acme: Merchant, lea: Payer) -> None:
        Merchant.objects.update(opt_in_enabled=True)
        prove(lea)
        lea.post("/split", split="all")
        lea.client.get(lea.client.post(lea.get("/card")["Location"], CARD)["Location"])
        captures.capture(acme, lea.checkout.pk, cause=CAUSE)
        assert 'value="Lea Fontaine"' in words(lea.get())
        tells_nothing(Payer(lea.checkout).get())


@pytest.mark.rule("prefill.language")
class TestTheLanguage:
    def at_order(self, acme: Merchant, locale: str, **headers: str) -> Payer:
        payer = at_order(acme, LEA | {"locale": locale})
        payer.client = Client(headers=headers)
        return payer

    @pytest.mark.parametrize("locale", ["fr", "fr-CA", "fr_FR", "FR", "fr_FR.UTF-8"])
    def test_of_the_merchants_request_precedes_that_of_the_browser(self, acme: Merchant, locale: str) -> None:
        page = self.at_order(acme, locale, accept_language="en-GB,en;q=0.9").get()
        assert page["Content-Language"] == "fr" and 'lang="fr"' in words(page)
        assert IS_IT not in words(page)

    @pytest.mark.parametrize("locale", ["tlh", "x", "../fr", "%s", "xx-" + "y" * 30])
    def test_that_is_not_supported_is_ignored(self, acme: Merchant, locale: str) -> None:
        page = self.at_order(acme, locale, accept_language="fr").get()
        assert page["Content-Language"] == "fr"
        assert self.at_order(acme, locale).get()["Content-Language"] == "en-gb"

    def test_that_the_payer_chooses_precedes_both(self, acme: Merchant) -> None:
        payer = self.at_order(acme, "fr", accept_language="fr")
        here = f"/pay?id={payer.checkout.pk}"
        payer.client.post("/pay/language", {"language": "en-gb", "next": here})
        assert IS_IT in words(payer.get()) and payer.get()["Content-Language"] == "en-gb"
        payer.client.cookies[settings.LANGUAGE_COOKIE_NAME] = "tlh"
        assert payer.get()["Content-Language"] == "fr"

    def test_applies_to_texts_and_to_the_banks_pages(self, acme: Merchant) -> None:
        payer = self.at_order(acme, "fr", accept_language="en")
        prove(payer)
        assert FRENCH_CODE in str(SmsMessage.objects.get().body)
        payer.post("/split", split="all")
        bank = payer.get("/card")["Location"]
        card, refused = payer.client.get(bank), payer.client.post(bank, {"number": "1"})
        assert "Payer par carte" in words(card) and card["Content-Language"] == "fr"
        assert "Ce n’est pas une carte de test." in words(refused)

    def test_ends_with_the_order(self, acme: Merchant, unpaid: Checkout) -> None:
        payer = self.at_order(acme, "fr")
        assert payer.get()["Content-Language"] == "fr"
        other = Payer(unpaid)
        other.client = payer.client
        assert other.get()["Content-Language"] == "en-gb"


@pytest.mark.rule("known.prefilled")
class TestARememberedPayer:
    @pytest.fixture
    def remembered(self, unpaid: Checkout) -> Payer:
        """Return a browser that remembers the number 07700 900123."""
        payer = Payer(unpaid)
        payer.post("/phone", phone="07700 900123")
        payer.post("/code", code=payer.code(), remember="yes")
        wait()
        return payer

    def test_continues_without_a_code_with_the_same_number(self, acme: Merchant, remembered: Payer) -> None:
        visit = at_order(acme, LEA)
        visit.client = remembered.client
        assert "Continue as •••• 0123" in words(visit.get())
        assert visit.post("/known")["Location"] == f"/pay/split?id={visit.checkout.pk}"
        assert 'value="Lea Fontaine"' in words(visit.get("/split"))

    def test_needs_a_code_with_another_number(self, acme: Merchant, remembered: Payer) -> None:
        visit = at_order(acme, LEA | {"phone": "+447700900555"})
        visit.client = remembered.client
        assert IS_IT in words(visit.get()) and "•••• 0555" in words(visit.get())
        assert visit.post("/known")["Location"] == f"/pay?id={visit.checkout.pk}"
        visit.checkout.refresh_from_db()
        assert visit.checkout.lead is None and visit.get("/split").status_code == 303

    def test_can_be_remembered_with_the_merchants_number(self, acme: Merchant, lea: Payer) -> None:
        lea.post("/prefilled")
        lea.post("/code", code=shown_code(lea.get()), remember="yes")
        visit = at_order(acme, LEA)
        visit.client = lea.client
        assert "Continue as •••• 0123" in words(visit.get())
