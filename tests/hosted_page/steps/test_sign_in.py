"""Sign-in with a phone number and a code."""

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from hosted_page.models import SignInCode, SmsMessage
from hosted_page.sms import limits
from tests import factories
from tests.hosted_page.browsers import PHONE, Payer, words
from tests.hosted_page.status.reading import plain
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db


class TestSignIn:
    @pytest.mark.rule("sign_in.tries")
    def test_five_wrong_tries_end_a_code(self, lea: Payer) -> None:
        lea.post("/phone", phone=PHONE)
        right = lea.code()
        wrong = f"{(int(right) + 1) % 10**6:06d}"
        for left in ("4 tries", "3 tries", "2 tries", "1 try"):
            assert f"You have {left} left" in words(lea.post("/code", code=wrong))
        ended = words(lea.post("/code", code=wrong))
        assert "That code no longer works Enter your number again, then ask for a new code." in plain(ended)
        assert "aria-invalid" not in ended, "the number is not wrong"
        assert "Your mobile number" in words(lea.get()), "no digits work any more, so none are asked for"
        again = words(lea.post("/phone", phone=PHONE))
        assert "Wait 30 seconds" in again and "Your mobile number" in again
        lea.post("/code", code=right)
        lea.checkout.refresh_from_db()
        assert lea.checkout.lead is None

    @pytest.mark.rule("sign_in.bound")
    def test_a_code_works_only_in_its_own_browser(self, lea: Payer) -> None:
        lea.post("/phone", phone=PHONE)
        other = Payer(lea.checkout)
        other.post("/code", code=lea.code())
        assert "Your mobile number" in words(other.get())

    @pytest.mark.rule("sign_in.limits")
    def test_a_second_code_can_be_requested_after_half_a_minute(self, lea: Payer) -> None:
        lea.post("/phone", phone=PHONE)
        assert "Wait 30 seconds" in words(lea.post("/resend"))
        assert SignInCode.objects.count() == 1

    @pytest.mark.rule("sign_in.limits")
    def test_a_checkout_gets_five_codes(self, lea: Payer) -> None:
        for number in range(6):
            lea.post("/phone", phone=f"07700 90012{number}")
        assert SignInCode.objects.count() == 5
        assert "cannot send more codes for this link" in words(lea.post("/phone", phone="07700 900199"))

    @pytest.mark.rule("sign_in.limits")
    def test_a_limit_is_a_notice_and_leaves_the_number_and_the_code_as_they_are(self, lea: Payer) -> None:
        refused = lea.post("/phone", phone="07700 900199")
        assert refused.status_code == 303
        page = words(lea.post("/resend"))
        assert "Enter the" in page and "We have not sent a code" in page and "Wait 30 seconds" in page
        assert "aria-invalid" not in page and "field-error" not in page
        for number in range(5):
            lea.post("/phone", phone=f"07700 90012{number}")
        page = words(lea.post("/resend"))
        assert "We have not sent a code" in page and "cannot send more codes for this link" in page
        assert "aria-invalid" not in page and "field-error" not in page

    def test_a_country_without_texts_is_an_error_of_the_number(self, lea: Payer, settings: Settings) -> None:
        settings.SMS_COUNTRIES = ["FR"]
        page = words(lea.post("/phone", phone=PHONE))
        assert 'aria-invalid="true"' in page and "We have not sent a code" not in page

    @pytest.mark.rule("sign_in.limits")
    def test_a_number_gets_five_codes_an_hour(self, lea: Payer) -> None:
        for _ in range(6):
            Payer(factories.checkout(lea.checkout.merchant)).post("/phone", phone=PHONE)
            SmsMessage.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        assert SignInCode.objects.count() == 5

    @pytest.mark.rule("sign_in.code")
    def test_only_a_keyed_hash_of_the_code_is_stored(self, lea: Payer) -> None:
        lea.post("/phone", phone=PHONE)
        assert lea.code() not in str(SignInCode.objects.values().get())


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
            "07700 900123 ext. 5",
        ],
        ids=lambda typed: repr(typed)[:20],
    )
    def test_that_cannot_get_texts_is_asked_again(self, lea: Payer, typed: str) -> None:
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
