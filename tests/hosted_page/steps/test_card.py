from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.utils import timezone

from checkout.models import Checkout
from payments.models import Payment
from payments.providers.sandbox.models import CardToken
from tests.hosted_page.browsers import Payer, words
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db
CARD = {"number": "4242424242424242", "expiry": "08/49", "code": "123"}


@pytest.mark.rule("pay.declines")
class TestDeclinedCards:
    DECLINED = "4000000000000002"

    def try_card(self, lea: Payer, number: str) -> Any:
        bank = lea.get("/card")
        if bank.status_code != 302:
            return bank
        back = lea.client.post(bank["Location"], {"number": number, "expiry": "08 / 49", "code": "123"})
        return lea.client.get(back["Location"])

    def test_are_limited_to_five_an_hour(self, lea: Payer) -> None:
        lea.pay(self.DECLINED)
        bank = lea.get("/card")["Location"]
        for _ in range(4):
            assert self.try_card(lea, self.DECLINED).status_code == 303
        refused = self.try_card(lea, "4242424242424242")
        assert refused.status_code == 429 and "Too many cards were declined" in words(refused)
        assert "No money was taken." in words(refused) and "Back to <bdi>Acme Tickets" in words(refused)
        assert "order again at the shop" in words(refused), "in an hour it has expired"
        Checkout.objects.update(payable_until=timezone.now() + timedelta(hours=2))
        assert "try again in an hour" in words(self.try_card(lea, "4242424242424242"))
        opened_before = lea.client.post(
            bank, {"number": "4242424242424242", "expiry": "08 / 49", "code": "123"}
        )
        assert lea.client.get(opened_before["Location"], follow=True).status_code == 429
        assert Checkout.objects.get(pk=lea.checkout.pk).status == "created"
        Payment.objects.update(created_at=timezone.now() - timedelta(hours=1, minutes=1))
        assert self.try_card(lea, "4242424242424242").status_code == 303
        assert "Held, not taken yet" in words(lea.get())

    def test_are_named_only_to_the_payer_who_entered_them(self, lea: Payer) -> None:
        lea.pay(self.DECLINED)
        assert "Visa ending 0002" in words(lea.client.get(lea.get("/card")["Location"]))
        finn = Payer(lea.checkout)
        finn.sign_in("07700 900456")
        finn.post("/split", split="all")
        page = words(finn.client.get(finn.get("/card")["Location"]))
        assert "No money was taken." in page and "0002" not in page.split("Test cards")[0]

    def test_that_the_payer_did_not_confirm_do_not_count(self, lea: Payer) -> None:
        lea.pay(self.DECLINED)
        Payment.objects.update(decline_reason="challenge_failed")
        for _ in range(4):
            self.try_card(lea, self.DECLINED)
        assert lea.get("/card").status_code == 302


@pytest.fixture
def at_card(lea: Payer) -> str:
    """Sign Lea in, and return the address of her card page at the bank."""
    lea.sign_in()
    lea.post("/split", split="all")
    address: str = lea.get("/card")["Location"]
    return address


class TestCard:
    @pytest.mark.parametrize(
        "changes",
        [
            *({"number": number} for number in ("", "4111111111111111", "4242", "abc", "9" * 5_000, "\x00")),
            *({"expiry": expiry} for expiry in ("", "13/49", "00/49", "08/20", "0849\x00", "8", "١/٤٩x")),
            *({"code": code} for code in ("", "12", "12345", "abc", "１２３", "\x00")),
        ],
        ids=lambda changes: repr(changes)[:30],
    )
    def test_with_invalid_details_is_asked_again(
        self, lea: Payer, at_card: str, changes: dict[str, str]
    ) -> None:
        with nothing_moves():
            assert lea.client.post(at_card, CARD | changes).status_code == 422
        assert not CardToken.objects.exists()

    @pytest.mark.parametrize("session", ["019f8b6e-0000-7000-8000-000000000000", "abc", "%00"])
    def test_page_of_an_unknown_session_is_a_404(self, lea: Payer, session: str) -> None:
        assert lea.client.get(f"/bank/card/{session}").status_code == 404

    @pytest.mark.parametrize(
        "token", ["", "tok_unknown", "x" * 5_000, "a\x00b", "tökén"], ids=lambda t: repr(t)[:9]
    )
    def test_token_that_is_invalid_is_declined(self, lea: Payer, at_card: str, token: str) -> None:
        back: Any = lea.client.post(at_card, CARD)["Location"]
        address = back.partition("&card_token=")[0]
        answer = lea.client.get("/pay/paid", {**_query(address), "card_token": token})
        assert (answer.status_code, answer["Location"]) == (303, f"/pay?id={lea.checkout.pk}")
        lea.checkout.refresh_from_db()
        assert lea.checkout.status == "created"
        assert not Payment.objects.exclude(status="declined").exists()

    def test_token_of_another_provider_may_be_long(self, lea: Payer, at_card: str) -> None:
        back: Any = lea.client.post(at_card, CARD)["Location"]
        query = _query(back.partition("&card_token=")[0])
        lea.client.get("/pay/paid", {**query, "card_token": "t" * 255})
        assert Payment.objects.get().card_token == "t" * 255


def _query(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).query))
