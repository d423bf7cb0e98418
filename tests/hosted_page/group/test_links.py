"""The mates' links on the lead's page: the state of each share, and the people who can see its link."""

import pytest
from django.test import Client
from django.utils import timezone

from checkout.models import Checkout, GroupLink, PaymentRequest
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


@pytest.mark.rule("sign_in.limits")
class TestAMateWhoGotTheLinkByText:
    def test_gets_a_code_despite_the_codes_that_others_requested_at_the_group_link(self, finn: Mate) -> None:
        share, stranger = finn.share, Client()
        PaymentRequest.objects.filter(pk=share.pk).update(phone="+447700900456")
        token = GroupLink.objects.get(checkout=share.checkout).token
        at_group_link = f"/pay/g/{token}/{share.position}/phone"
        for number in range(codes.CODES_PER_SUBJECT):
            assert stranger.post(at_group_link, {"phone": f"07700 90020{number}"}).status_code == 303
        refused = [stranger.post(at_group_link, {"phone": phone}) for phone in ("07700 900299", FINN)]
        assert [answer.status_code for answer in refused] == [422, 422], (
            "the answer does not reveal the number"
        )
        assert finn.post("/phone", phone=FINN).status_code == 303
        assert SignInCode.objects.filter(subject=share.pk, phone="+447700900456").count() == 1

    def test_gets_five_codes_a_day(self, finn: Mate) -> None:
        PaymentRequest.objects.filter(pk=finn.share.pk).update(phone="+447700900456")
        answers = []
        for _ in range(codes.CODES_PER_SUBJECT + 1):
            answers.append(finn.post("/phone", phone=FINN).status_code)
            SmsMessage.objects.all().delete()  # otherwise the number must wait for its next code
        assert answers == [303] * codes.CODES_PER_SUBJECT + [422]
