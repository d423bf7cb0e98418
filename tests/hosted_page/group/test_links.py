"""The mates' links on the lead's page: the state of each share, and the people who can see its link."""

import pytest
from django.utils import timezone

from checkout.models import Checkout
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.sms import limits
from hosted_page.steps import codes
from tests.hosted_page.browsers import FINN, Mate, Payer, shown_code, words

pytestmark = pytest.mark.django_db


class TestTheLead:
    def test_is_the_only_one_who_sees_the_links(self, lead: Payer, order: Checkout) -> None:
        page = words(Payer(order).get())
        assert "Confirmed and paid." in page and "/pay/share/" not in page and "Finn" not in page

    def test_can_sign_in_again_on_another_phone(self, order: Checkout) -> None:
        later = Payer(order)
        assert "Did you pay this?" in words(later.get())
        SmsMessage.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        code_page = later.client.get(later.post("/phone", phone="07700 900123")["Location"])
        assert "6-digit" in words(code_page)
        later.post("/code", code=shown_code(code_page))
        assert words(later.get()).count("/pay/share/") > 1

    @pytest.mark.rule("sign_in.payer_returns")
    def test_is_the_only_one_who_gets_a_code_after_payment(self, order: Checkout) -> None:
        stranger = Payer(order)
        code_page = stranger.client.get(stranger.post("/phone", phone=FINN)["Location"])
        assert "6-digit" in words(code_page) and shown_code(code_page) == ""
        assert "/pay/share/" not in words(stranger.get())

    def test_can_sign_in_again_despite_other_peoples_codes(self, order: Checkout) -> None:
        stranger = Payer(order)
        for number in range(codes.CODES_PER_SUBJECT + 1):
            stranger.post("/phone", phone=f"07700 90020{number}")
        asked = [code.phone for code in SignInCode.objects.all() if code.phone.startswith("+4477009002")]
        assert len(asked) == codes.CODES_PER_SUBJECT + 1
        later = Payer(order)
        SmsMessage.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        assert later.post("/phone", phone="07700 900123").status_code == 303

    def test_must_sign_in_again_before_a_change_is_saved(self, lead: Payer, finn: Mate) -> None:
        lead.client.cookies.clear()
        answer = lead.post("/cancel-share", share=str(finn.share.pk))
        assert answer.status_code == 403 and "This was not saved, and you were not charged." in words(answer)
        assert "Sign in again" in words(answer)
        assert finn.status() == "open"

    def test_sees_no_links_before_the_capture(self, lead: Payer) -> None:
        page = words(lead.get())
        assert "Starts when confirmed" in page and "/pay/share/" not in page
