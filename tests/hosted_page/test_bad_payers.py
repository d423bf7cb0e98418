"""Invalid and forged requests to the hosted page, sent by people, their browsers and attackers."""

import re
from collections.abc import Callable

import pytest
from django.test import Client

from checkout.models import Checkout, PaymentRequest
from checkout.states import PAID
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.payment_target import SIGN_IN
from payments.models import Payment
from tests import factories
from tests.hosted_page.browsers import PHONE, Payer, words
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db
GETS = ("", "/split", "/card", "/paid")
POSTS = ("/phone", "/resend", "/code", "/split", "/cancel", "/leave")
ENDED = ("expired", "voided", "lapsed", "captured", "refunding", "refunded")
CARD = {"number": "4242424242424242", "expiry": "08/49", "code": "123"}
CHOOSE, BETWEEN = "Choose who pays.", "Choose between 2 and 20 people."
AMOUNT = "Enter an amount, such as 24.00."


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
    def test_of_an_unknown_order_is_a_404_page(self, unpaid: Checkout, query: str) -> None:
        browser, given = Client(), query.format(uuid=unpaid.pk)
        with nothing_moves():
            for answer in (
                *(browser.get(f"/pay{step}{given}") for step in GETS),
                *(browser.post(f"/pay{step}{given}", {"phone": PHONE}) for step in POSTS),
            ):
                assert (answer.status_code, answer["Content-Type"]) == (404, "text/html; charset=utf-8")
                assert "<h1" in words(answer) and "<script>alert" not in words(answer)
        assert not SignInCode.objects.exists()

    def test_accepts_each_step_only_with_its_own_method(self, lea: Payer) -> None:
        with nothing_moves():
            for step in set(POSTS) - {"/split"}:
                opened = lea.get(step)
                assert opened.status_code == 405 and opened["Allow"] == "POST"
                assert "This page can’t be opened this way" in words(opened)
                assert f'href="/pay?id={lea.checkout.pk}"' in words(opened), "the page with the form"
            for step in set(GETS) - {"/split"}:
                assert lea.post(step).status_code == 405

    @pytest.mark.rule("secret.csp")
    @pytest.mark.parametrize("step", POSTS)
    def test_accepts_no_form_from_another_site(self, unpaid: Checkout, step: str) -> None:
        with nothing_moves():
            answer = Client(enforce_csrf_checks=True).post(f"/pay{step}?id={unpaid.pk}", {"phone": PHONE})
        assert answer.status_code == 403 and "<h1" in words(answer)
        assert not SignInCode.objects.exists()


class TestOrder:
    @pytest.mark.parametrize("status", ENDED)
    def test_that_has_ended_shows_its_outcome_and_no_form(
        self, at: Callable[[str], Checkout], status: str
    ) -> None:
        payer = Payer(at(status))
        with nothing_moves():
            page = payer.get()
            forms = re.findall(r'<form[^>]*action="([^"]*)"', words(page))
            assert (page.status_code, forms) == (200, ["/pay/language"])
            for step in ("/phone", "/resend", "/code", "/split"):
                answer = payer.post(step, phone=PHONE, code="123456", split="all")
                # A payer can sign in to a paid order. No code was sent to this number, so these two forms are refused.
                if answer.status_code == 422:
                    assert status in PAID and step in ("/resend", "/code")
                    continue
                assert answer.status_code == 303
                assert answer["Location"].removesuffix(f"&{SIGN_IN}=1") == f"/pay?id={payer.checkout.pk}"
            for step in ("/split", "/card"):
                assert payer.get(step)["Location"] == f"/pay?id={payer.checkout.pk}"
        assert not SmsMessage.objects.filter(due_at__isnull=False).exists(), "nobody gets a code"

    @pytest.mark.rule("lapse.whoever")
    def test_past_its_deadline_is_shown_as_expired(self, lea: Payer) -> None:
        lea.sign_in()
        factories.make_late(lea.checkout)
        assert lea.post("/split", split="all")["Location"] == f"/pay?id={lea.checkout.pk}"
        assert "This order has expired" in words(lea.get())

    def test_steps_are_not_skipped(self, lea: Payer) -> None:
        with nothing_moves():
            for answer in (lea.get("/split"), lea.get("/card")):
                assert answer["Location"] == f"/pay?id={lea.checkout.pk}"
            assert "This was not saved, and you were not charged." in words(lea.post("/split", split="all"))
            assert lea.get("/paid", card_token="tok_x").status_code == 404
            assert lea.get("/paid", card_token="tok_x", bound="forged").status_code == 404
        lea.sign_in()
        assert lea.get("/card")["Location"] == f"/pay?id={lea.checkout.pk}"

    @pytest.mark.parametrize("cookie", ["", "x", "a:b:c", "\xff", "{}"])
    def test_a_forged_cookie_signs_no_one_in(self, lea: Payer, cookie: str) -> None:
        for name in (f"payer_{lea.checkout.pk.hex}", "payer_browser", "payer_code"):
            lea.client.cookies[name] = cookie
        with nothing_moves():
            assert "Your mobile number" in words(lea.get())
            assert "This was not saved, and you were not charged." in words(lea.post("/split", split="all"))

    @pytest.mark.rule("sign_in.session")
    def test_a_sign_in_of_another_order_does_not_count(self, lea: Payer) -> None:
        lea.sign_in()
        other = factories.checkout(lea.checkout.merchant)
        morsel = lea.client.cookies[f"payer_{lea.checkout.pk.hex}"].value
        lea.client.cookies[f"payer_{other.pk.hex}"] = morsel
        assert "Your mobile number" in words(lea.client.get(f"/pay?id={other.pk}"))

    @pytest.mark.rule("pay.token_once")
    def test_amounts_come_only_from_the_server(self, lea: Payer) -> None:
        lea.sign_in()
        lie = {"amount": "1", "total": "1", "share": "1", "status": "captured"}
        lea.post("/split", split="equal", people="3", your_name="Lea", **lie)
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
            ({"split": "equal", "people": "3"}, "Enter your name."),
            ({"split": "equal", "people": "3", "your_name": " \n"}, "Enter your name."),
            ({"split": "own", "amount": "1"}, "Enter your name."),
            ({"split": "own", "name": "Finn"}, AMOUNT),
            *(
                ({"split": "own", "amount": amount}, AMOUNT)
                for amount in ("0", "-1", "x", "1.234", "1,2,3", "\x00", "1e3", "9" * 15, "٢")
            ),
            ({"split": "own", "amount": "90.01"}, "£0.01 more than the order. Reduce a share."),
        ],
        ids=lambda case: "-".join(case.values())[:20] if isinstance(case, dict) else "",
    )
    def test_an_invalid_split_is_asked_again(self, lea: Payer, form: dict[str, str], asks: str) -> None:
        lea.sign_in()
        with nothing_moves():
            answer = lea.post("/split", **form)
        assert answer.status_code == 422 and asks in words(answer)
        assert not PaymentRequest.objects.exists()
