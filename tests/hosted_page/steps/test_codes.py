"""Sign-in codes by SMS: who gets a code, how often, and for which order a code is valid."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.sms import limits, senders
from hosted_page.steps import codes
from tests import factories
from tests.hosted_page.browsers import FINN, PHONE, Mate, Payer, shown_code, words
from tests.hosted_page.group.test_bill import text
from tests.hosted_page.sms.test_outbox import Network, send_all
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db


class TestCode:
    @pytest.fixture
    def right(self, lea: Payer) -> str:
        lea.post("/phone", phone=PHONE)
        return lea.code()

    @pytest.mark.parametrize("typed", ["", "12345", "1234567", "abcdef", "1" * 5_000, "\x00", "½½½½½½", "-1"])
    def test_without_six_digits_does_not_count_as_a_try(self, lea: Payer, right: str, typed: str) -> None:
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
    def test_that_has_expired_or_was_used_does_not_sign_in(self, lea: Payer, right: str, ended: str) -> None:
        SignInCode.objects.update(**{ended: timezone.now()})
        with nothing_moves():
            assert "That code no longer works" in words(lea.post("/code", code=right))
        assert "Your mobile number" in words(lea.get())

    @pytest.mark.rule("sign_in.bound")
    @pytest.mark.parametrize("ended", ["expires_at", "used_at"])
    def test_that_expires_while_it_is_entered_does_not_sign_in(
        self, lea: Payer, right: str, ended: str
    ) -> None:
        code = SignInCode.objects.get()
        SignInCode.objects.update(**{ended: timezone.now()})
        with pytest.raises(codes.CodeEnded):
            codes.verify(code, right)
        assert SignInCode.objects.get().tries == 0

    def test_page_says_when_another_can_be_requested(self, lea: Payer, right: str) -> None:
        SignInCode.objects.update(created_at=timezone.now() - timedelta(seconds=20))
        assert re.search(r'data-resend-in="(10|9|8)"', lea.get().content.decode())
        SignInCode.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        assert "data-resend-in" not in lea.get().content.decode()

    def test_of_an_earlier_text_no_longer_works(self, lea: Payer, right: str) -> None:
        SmsMessage.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        lea.post("/resend")
        if lea.code() != right:
            assert "is not right" in words(lea.post("/code", code=right))

    def test_page_shows_the_status_of_the_text(
        self, lea: Payer, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.SANDBOX = False
        network = Network()
        monkeypatch.setattr(senders, "current_sender", lambda: network)
        lea.post("/phone", phone=PHONE)
        assert "We text the code to •••• 0123." in text(words(lea.get()))
        network.is_down = True
        send_all()
        page = text(words(lea.get()))
        assert "The text to •••• 0123 might not have been sent. Ask for a new code." in page
        assert "We text the code" not in page

    @pytest.mark.rule("sign_in.bound")
    def test_of_another_order_does_not_sign_in(self, lea: Payer, right: str) -> None:
        other = factories.checkout(lea.checkout.merchant)
        with nothing_moves():
            answer = lea.client.post(f"/pay/code?id={other.pk}", {"code": right})
            assert "That code no longer works" in words(answer)
        other.refresh_from_db()
        assert other.lead is None


class TestSigningIn:
    def test_to_a_share_has_its_own_codes(self, finn: Mate, order: Checkout) -> None:
        amy = Mate(order.payment_requests.get(position=3))
        finn.post("/phone", phone=FINN)
        code = shown_code(finn.get())
        amy.client.cookies = finn.client.cookies
        amy.post("/code", code=code)
        assert amy.get("/card")["Location"] == amy.path and "is asking you for" in words(amy.get())

    def test_sends_five_codes_at_most(self, finn: Mate) -> None:
        for _ in range(codes.CODES_PER_SUBJECT):
            finn.post("/phone", phone=FINN)
            SmsMessage.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        refused = finn.post("/resend")
        assert refused.status_code == 422 and "cannot send more codes for this page today" in words(refused)
        SignInCode.objects.update(created_at=timezone.now() - codes.CODES_WITHIN)
        SmsMessage.objects.update(created_at=timezone.now() - codes.CODES_WITHIN)
        assert finn.post("/phone", phone=FINN).status_code == 303

    def test_refuses_an_invalid_number(self, finn: Mate) -> None:
        refused = finn.post("/phone", phone="12")
        assert refused.status_code == 422 and "Enter a mobile number" in words(refused)
        assert "is asking you for" in words(refused)

    def test_lets_a_mate_change_the_number(self, finn: Mate) -> None:
        finn.post("/phone", phone=FINN)
        change = f"{finn.path}?change=1"
        assert f'href="{change}"' in words(finn.get()) and "Your mobile number" in words(
            finn.client.get(change)
        )
