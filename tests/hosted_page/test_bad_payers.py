"""What people, their browsers and their enemies send to the page."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from checkout.models import Checkout, PaymentRequest
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.sms import outbox
from payments.models import Payment
from payments.providers.sandbox.models import CardToken
from tests import factories
from tests.hosted_page.test_views import PHONE, Payer, words
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db
GETS = ("", "/split", "/card", "/paid", "/again")
POSTS = ("/phone", "/resend", "/code", "/split", "/cancel")
ENDED = ("expired", "voided", "lapsed", "captured", "refunding", "refunded")
CARD = {"number": "4242424242424242", "expiry": "08/49", "code": "123"}
CHOOSE, BETWEEN = "Choose who pays.", "Choose between 2 and 20 people."
AMOUNT = "Enter an amount, such as 24.00."


@pytest.fixture
def lea(unpaid: Checkout) -> Payer:
    return Payer(unpaid)


@pytest.fixture
def at_card(lea: Payer) -> str:
    """The address of the bank's card page, Lea being signed in."""
    lea.sign_in()
    lea.post("/split", split="all")
    address: str = lea.get("/card")["Location"]
    return address


class TestAddress:
    @pytest.mark.parametrize(
        "query",
        [
            "",
            "?id=",
            "?id=abc",
            "?id=%00",
            "?id=%ff",
            "?id=019f8b6e-0000-7000-8000-000000000000",
            "?ID={uuid}",
            "?id={uuid}%00",
            "?id={uuid}&id={uuid}",
            "?id={uuid}&id=",
            "?id=" + "a" * 5_000,
            "?id=<script>alert(1)</script>",
        ],
        ids=lambda query: query[:20],
    )
    def test_of_no_order_is_a_page_that_says_so(self, unpaid: Checkout, query: str) -> None:
        browser, given = Client(), query.format(uuid=unpaid.pk)
        with nothing_moves():
            for answer in (
                *(browser.get(f"/pay{step}{given}") for step in GETS),
                *(browser.post(f"/pay{step}{given}", {"phone": PHONE}) for step in POSTS),
            ):
                assert (answer.status_code, answer["Content-Type"]) == (404, "text/html; charset=utf-8")
                assert "<h1" in words(answer) and "<script>alert" not in words(answer)
        assert not SignInCode.objects.exists()

    def test_takes_each_step_by_its_method_alone(self, lea: Payer) -> None:
        with nothing_moves():
            for step in set(POSTS) - {"/split"}:
                assert lea.get(step).status_code == 405
            for step in set(GETS) - {"/split"}:
                assert lea.post(step).status_code == 405

    @pytest.mark.rule("secret.csp")
    @pytest.mark.parametrize("step", POSTS)
    def test_takes_no_form_of_another_site(self, unpaid: Checkout, step: str) -> None:
        with nothing_moves():
            answer = Client(enforce_csrf_checks=True).post(f"/pay{step}?id={unpaid.pk}", {"phone": PHONE})
        assert answer.status_code == 403 and "<h1" in words(answer)
        assert not SignInCode.objects.exists()


class TestOrder:
    @pytest.mark.parametrize("status", ENDED)
    def test_that_has_ended_shows_how_and_asks_for_nothing(
        self, at: Callable[[str], Checkout], status: str
    ) -> None:
        payer = Payer(at(status))
        with nothing_moves():
            page = payer.get()
            forms = re.findall(r'<form[^>]*action="([^"]*)"', words(page))
            assert (page.status_code, forms) == (200, ["/pay/language"])
            for step in ("/phone", "/resend", "/code", "/split"):
                answer = payer.post(step, phone=PHONE, code="123456", split="all")
                assert (answer.status_code, answer["Location"]) == (303, f"/pay?id={payer.checkout.pk}")
            for step in ("/split", "/card"):
                assert payer.get(step)["Location"] == f"/pay?id={payer.checkout.pk}"
        assert not SignInCode.objects.exists()

    @pytest.mark.rule("lapse.whoever")
    def test_that_is_late_is_found_so_by_its_page(self, lea: Payer) -> None:
        lea.sign_in()
        factories.make_late(lea.checkout)
        assert lea.post("/split", split="all")["Location"] == f"/pay?id={lea.checkout.pk}"
        assert "This order has expired" in words(lea.get())

    def test_steps_are_not_skipped(self, lea: Payer) -> None:
        with nothing_moves():
            for answer in (lea.get("/split"), lea.get("/card"), lea.post("/split", split="all")):
                assert answer["Location"] == f"/pay?id={lea.checkout.pk}"
            assert lea.get("/paid", card_token="tok_x").status_code == 404
            assert lea.get("/paid", card_token="tok_x", bound="forged").status_code == 404
        lea.sign_in()
        assert lea.get("/card")["Location"] == f"/pay?id={lea.checkout.pk}"

    @pytest.mark.parametrize("cookie", ["", "x", "a:b:c", "\xff", "{}"])
    def test_a_forged_cookie_is_nobody(self, lea: Payer, cookie: str) -> None:
        for name in (f"payer_{lea.checkout.pk.hex}", "payer_browser", "payer_code"):
            lea.client.cookies[name] = cookie
        with nothing_moves():
            assert "Your mobile number" in words(lea.get())
            assert lea.post("/split", split="all")["Location"] == f"/pay?id={lea.checkout.pk}"

    @pytest.mark.rule("sign_in.session")
    def test_a_sign_in_of_another_order_is_nobody_here(self, lea: Payer) -> None:
        lea.sign_in()
        other = factories.checkout(lea.checkout.merchant)
        morsel = lea.client.cookies[f"payer_{lea.checkout.pk.hex}"].value
        lea.client.cookies[f"payer_{other.pk.hex}"] = morsel
        assert "Your mobile number" in words(lea.client.get(f"/pay?id={other.pk}"))

    @pytest.mark.rule("pay.token_once")
    def test_amounts_come_from_the_server_alone(self, lea: Payer) -> None:
        lea.sign_in()
        lea.post("/split", split="equal", people="3", amount="1", total="1", share="1", status="captured")
        lea.checkout.refresh_from_db()
        assert (lea.checkout.amount, lea.checkout.status, lea.checkout.people) == (9000, "created", 3)
        assert list(PaymentRequest.objects.values_list("amount", flat=True)) == [3000, 3000]
        back = lea.client.post(lea.get("/card")["Location"], CARD | {"amount": "1"})
        lea.client.get(f"{back['Location']}&amount=1")
        assert Payment.objects.get().amount == 9000

    @pytest.mark.parametrize(
        ("form", "asks"),
        [
            ({}, CHOOSE),
            ({"split": ""}, CHOOSE),
            ({"split": "theirs"}, CHOOSE),
            ({"split": "equal"}, BETWEEN),
            *(({"split": "equal", "people": people}, BETWEEN) for people in ("0", "1", "-1", "21", "1000")),
            *(
                ({"split": "equal", "people": people}, BETWEEN)
                for people in ("2.5", "many", "\x00", "9" * 50)
            ),
            ({"split": "own"}, "at least one mate"),
            ({"split": "own", "name": "Finn"}, AMOUNT),
            *(
                ({"split": "own", "amount": amount}, AMOUNT)
                for amount in ("0", "-1", "x", "1.234", "1,2,3", "\x00", "1e3", "9" * 15, "٢")
            ),
            ({"split": "own", "amount": "90.01"}, "£0.01 more than the order. Lower a share."),
        ],
        ids=lambda case: "-".join(case.values())[:20] if isinstance(case, dict) else "",
    )
    def test_a_split_that_makes_no_sense_is_asked_again(
        self, lea: Payer, form: dict[str, str], asks: str
    ) -> None:
        lea.sign_in()
        with nothing_moves():
            answer = lea.post("/split", **form)
        assert answer.status_code == 422 and asks in words(answer)
        assert not PaymentRequest.objects.exists()


class TestPhone:
    @pytest.mark.rule("sign_in.number")
    @pytest.mark.parametrize(
        "typed",
        [
            "",
            "   ",
            "abc",
            "+",
            "12345",
            "1" * 20,
            "9" * 5_000,
            "020 8366 1177",
            "0909 879 0000",
            "0800 123 4567",
            "+999 123456789",
            "\x00",
            "<script>alert(1)</script>",
            "07700 900123 or 07700 900124",
            "lea@shop.example",
        ],
        ids=lambda typed: repr(typed)[:20],
    )
    def test_that_gets_no_texts_is_asked_again(self, lea: Payer, typed: str) -> None:
        with nothing_moves():
            answer = lea.post("/phone", phone=typed)
        assert answer.status_code == 422 and "Enter a mobile number" in words(answer)
        assert "<script>alert" not in words(answer)
        assert not SignInCode.objects.exists()

    def test_that_is_missing_is_asked_again(self, lea: Payer) -> None:
        assert lea.post("/phone").status_code == 422

    @pytest.mark.rule("sign_in.number")
    @pytest.mark.parametrize(
        "typed",
        [
            "07700 900123",
            "07700-900-123",
            " +44 (0)7700 900123 ",
            "00447700900123",
            "+447700900123",
            "tel:+447700900123",
            "٠٧٧٠٠ ٩٠٠١٢٣",
            "０７７００９００１２３",
        ],
    )
    def test_is_read_however_it_is_written(self, lea: Payer, typed: str) -> None:
        assert lea.post("/phone", phone=typed).status_code == 303
        assert SignInCode.objects.get().phone == "+447700900123"


class TestCode:
    @pytest.fixture
    def right(self, lea: Payer) -> str:
        lea.post("/phone", phone=PHONE)
        return lea.code()

    @pytest.mark.parametrize("typed", ["", "12345", "1234567", "abcdef", "1" * 5_000, "\x00", "½½½½½½", "-1"])
    def test_without_six_digits_counts_no_try(self, lea: Payer, right: str, typed: str) -> None:
        with nothing_moves():
            answer = lea.post("/code", code=typed)
        assert answer.status_code == 422 and "The code has 6 digits." in words(answer)
        assert SignInCode.objects.get().tries == 0

    def test_that_is_wrong_counts_one(self, lea: Payer, right: str) -> None:
        answer = lea.post("/code", code=f"{(int(right) + 1) % 10**6:06d}")
        assert answer.status_code == 422 and "You have 4 tries left." in words(answer)
        assert SignInCode.objects.get().tries == 1

    @pytest.mark.parametrize(
        "write",
        [
            lambda code: f" {code[:3]} {code[3:]} ",
            lambda code: f"{code[:3]}-{code[3:]}",
            lambda code: "".join(chr(ord("０") + int(digit)) for digit in code),
            lambda code: "".join(chr(ord("٠") + int(digit)) for digit in code),
        ],
    )
    def test_is_read_however_it_is_written(self, lea: Payer, right: str, write: Callable[[str], str]) -> None:
        assert lea.post("/code", code=write(right)).status_code == 303
        lea.checkout.refresh_from_db()
        assert lea.checkout.lead is not None

    @pytest.mark.rule("sign_in.bound")
    @pytest.mark.parametrize("ended", ["expires_at", "used_at"])
    def test_that_is_old_or_used_signs_nobody_in(self, lea: Payer, right: str, ended: str) -> None:
        SignInCode.objects.update(**{ended: timezone.now()})
        with nothing_moves():
            assert lea.post("/code", code=right).status_code == 303
        assert "Your mobile number" in words(lea.get())

    def test_of_an_earlier_text_no_longer_works(self, lea: Payer, right: str) -> None:
        SmsMessage.objects.update(created_at=timezone.now() - outbox.GAP)
        lea.post("/resend")
        if lea.code() != right:
            assert "is not right" in words(lea.post("/code", code=right))

    @pytest.mark.rule("sign_in.bound")
    def test_of_another_order_signs_nobody_in(self, lea: Payer, right: str) -> None:
        other = factories.checkout(lea.checkout.merchant)
        with nothing_moves():
            assert lea.client.post(f"/pay/code?id={other.pk}", {"code": right}).status_code == 303
        other.refresh_from_db()
        assert other.lead is None


class TestCard:
    @pytest.mark.parametrize(
        "changes",
        [
            *({"number": number} for number in ("", "4111111111111111", "4242", "abc", "9" * 5_000, "\x00")),
            *({"expiry": expiry} for expiry in ("", "13/49", "00/49", "08/20", "0849\x00", "8", "١/٤٩x")),
            *({"code": code} for code in ("", "12", "12345", "abc", "１２３", "\x00")),
            {"name": "x" * 101},
        ],
        ids=lambda changes: repr(changes)[:30],
    )
    def test_that_is_none_is_asked_again(self, lea: Payer, at_card: str, changes: dict[str, str]) -> None:
        with nothing_moves():
            assert lea.client.post(at_card, CARD | changes).status_code == 422
        assert not CardToken.objects.exists()

    @pytest.mark.parametrize("session", ["019f8b6e-0000-7000-8000-000000000000", "abc", "%00"])
    def test_page_that_nobody_opened_is_a_404(self, lea: Payer, session: str) -> None:
        assert lea.client.get(f"/bank/card/{session}").status_code == 404

    @pytest.mark.parametrize(
        "token", ["", "tok_unknown", "x" * 5_000, "a\x00b", "tökén"], ids=lambda t: repr(t)[:9]
    )
    def test_token_that_is_none_is_declined(self, lea: Payer, at_card: str, token: str) -> None:
        back: Any = lea.client.post(at_card, CARD)["Location"]
        address = back.partition("&card_token=")[0]
        answer = lea.client.get("/pay/paid", {**_query(address), "card_token": token})
        assert (answer.status_code, answer["Location"]) == (303, f"/pay?id={lea.checkout.pk}")
        lea.checkout.refresh_from_db()
        assert lea.checkout.status == "created"
        assert not Payment.objects.exclude(status="declined").exists()


def _query(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).query))
