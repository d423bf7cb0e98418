"""The pay link: what a mate sees and does."""

import pytest
from django.utils import timezone

from checkout.models import Checkout
from hosted_page.models import SmsMessage
from hosted_page.sms import limits
from payments.models import Operation, Payment
from payments.providers.sandbox import fault_injection
from tests import mates
from tests.factories import stop
from tests.hosted_page.browsers import Mate, words

pytestmark = pytest.mark.django_db
CHALLENGED = "4000002500003155"


class TestPaying:
    def test_with_a_declined_card_can_try_another(self, finn: Mate, order: Checkout) -> None:
        finn.pay("4000000000000002")
        assert finn.status() == "open"
        page = finn.client.get(finn.get("/card")["Location"])
        assert "Your bank declined this card." in words(page) and "Pay £20.00" in words(page)

    def test_with_the_card_of_the_order_is_refused_with_a_reason(self, finn: Mate, order: Checkout) -> None:
        finn.pay("4242424242424242")
        assert mates.settled(finn.share) == "open"
        page = finn.client.get(finn.get("/card")["Location"])
        assert "This card has already paid the whole order." in words(page)

    def test_as_the_lead_leads_to_the_order(self, finn: Mate, order: Checkout) -> None:
        SmsMessage.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        finn.sign_in("07700 900123")
        page = finn.get()
        assert "This is your own order" in words(page) and f"/pay?id={order.pk}" in words(page)
        assert finn.get("/card")["Location"] == finn.path
        assert not Payment.objects.filter(subject=finn.share.pk).exists()

    def test_can_still_be_declined_on_the_card_page(self, finn: Mate, order: Checkout) -> None:
        finn.sign_in()
        page = words(finn.client.get(finn.get("/card")["Location"]))
        assert f'action="{finn.path}/decline"' in page and "I’m not paying this" in page
        finn.post("/decline")
        assert finn.status() == "declined"

    def test_with_a_reload_happens_once(self, finn: Mate, order: Checkout) -> None:
        finn.sign_in()
        card = {"number": mates.FINNS, "expiry": "08/49", "code": "123"}
        back = finn.client.post(finn.get("/card")["Location"], card)["Location"]
        for _ in range(3):
            assert finn.client.get(back)["Location"] == finn.path
        assert Payment.objects.filter(subject=finn.share.pk).count() == 1

    def test_with_a_token_of_another_share_pays_nothing(self, finn: Mate, order: Checkout) -> None:
        amy = Mate(order.payment_requests.get(position=3))
        amy.sign_in("07700 900457")
        finn.sign_in()
        card = {"number": mates.FINNS, "expiry": "08/49", "code": "123"}
        back: str = finn.client.post(finn.get("/card")["Location"], card)["Location"]
        stolen = back.replace(finn.share.token, amy.share.token)
        assert amy.client.get(stolen)["Location"] == amy.path
        assert not Payment.objects.filter(subject=amy.share.pk).exists()

    def test_is_confirmed_with_the_bank(self, finn: Mate, order: Checkout) -> None:
        to_bank = finn.pay(CHALLENGED)["Location"]
        page = words(finn.get())
        assert "Confirm with your bank" in page and "/bank/challenge/" in page
        assert "/bank/challenge/" not in words(Mate(finn.share).get())
        back = finn.client.post(to_bank, {"answer": "confirm"})["Location"]
        finn.client.get(back)
        mates.pump(order.pk)
        assert finn.status() == "paid"

    def test_without_confirming_can_be_restarted_with_another_card(self, finn: Mate, order: Checkout) -> None:
        finn.pay(CHALLENGED)
        assert finn.post("/another-card")["Location"] == finn.path
        assert finn.status() == "open" and finn.get()["Location"] == f"{finn.path}/card"

    def test_shows_a_wait_if_the_bank_does_not_answer(self, finn: Mate, order: Checkout) -> None:
        fault_injection.set_fault(verb="authorize", mode="done_then_reset", times=1)
        finn.pay()
        assert "Checking with your bank" in words(finn.get())
        Operation.objects.filter(payment__subject=finn.share.pk).update(created_at="2020-01-01T00:00Z")
        assert "Your bank has not answered" in words(finn.get())

    def test_of_a_stopped_merchant_is_refused(self, finn: Mate, order: Checkout) -> None:
        finn.sign_in()
        card = finn.get("/card")["Location"]
        stop(order.merchant)
        back = finn.client.post(card, {"number": mates.FINNS, "expiry": "08 / 49", "code": "123"})
        assert finn.client.get(back["Location"])["Location"] == finn.path
        assert "can’t take payments right now" in words(finn.get())
        assert finn.status() == "open"


@pytest.mark.rule("share.privacy")
def test_a_mate_sees_nothing_of_the_lead_or_of_other_mates(finn: Mate) -> None:
    page = words(finn.get())
    assert "900123" not in page and "4242" not in page and "Amy" not in page
