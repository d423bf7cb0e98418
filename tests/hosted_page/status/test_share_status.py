"""The status page of a share, as the mate who pays the share sees it."""

import pytest
from django.test import Client
from django.utils import timezone

from checkout import mate_shares, refunds, tasks
from checkout.models import Checkout, PaymentRequest
from hosted_page.models import SignInCode
from payments.inquiring import inquiries
from payments.providers.sandbox import client
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import FINN, Mate, Payer, words
from tests.hosted_page.status.reading import plain

pytestmark = pytest.mark.django_db


class TestTheLink:
    def test_names_the_lead_the_amount_and_the_end(self, finn: Mate) -> None:
        page = words(finn.get())
        assert "Lea</bdi> is asking you for" in page and "£20.00" in page and "Open until" in page
        assert "Lea’s order" in page and "Total, paid by Lea" in page

    def test_leads_from_phone_to_paid(self, finn: Mate, order: Checkout) -> None:
        assert finn.pay().status_code == 303
        assert "Paying your share" in words(finn.get()) or finn.status() == "paid"
        mates.pump(order.pk)
        page = plain(words(finn.get()))
        assert "You paid £20.00" in page and "Mastercard ending 4444" in page
        assert "It goes back to Lea’s card." in page
        assert mates.settled(finn.share) == "reimbursed"
        assert "It is back on Lea’s card." in plain(words(finn.get()))

    def test_shows_who_else_has_paid_until_all_have(self, finn: Mate, amy: PaymentRequest) -> None:
        finn.pay()
        mates.settled(finn.share)
        page = words(finn.get())
        assert "1 of 2 mates has paid" in page and "hx-get" in page and "Amy" not in page
        mates.pay(amy, mates.AMYS)
        mates.settled(amy)
        page = words(finn.get())
        assert "Everyone has paid" in page and "The bill is settled." in page and "hx-get" not in page

    def test_does_not_say_that_everyone_has_paid_if_the_lead_covers_a_share(
        self, finn: Mate, amy: PaymentRequest
    ) -> None:
        mate_shares.cancel(amy.pk)
        finn.pay()
        mates.settled(finn.share)
        page = words(finn.get())
        assert "1 of 2 mates has paid" in page and "hx-get" not in page

    def test_shows_no_card_to_another_browser(self, finn: Mate, order: Checkout) -> None:
        finn.pay()
        mates.pump(order.pk)
        assert "4444" not in words(Mate(finn.share).get())

    @pytest.mark.rule("share.link")
    @pytest.mark.parametrize("token", ["x", "A" * 22, "%00", "a" * 5000, "..%2f"])
    def test_that_is_unknown_is_a_404(self, finn: Mate, token: str) -> None:
        assert Client().get(f"/pay/share/{token}").status_code == 404

    def test_before_the_capture_is_not_open(self, lead: Payer) -> None:
        page = Mate(lead.checkout.payment_requests.get(position=2)).get()
        assert "Not open yet" in words(page) and "not been charged" in words(page)

    def test_is_declined_until_the_mate_changes_their_mind(self, finn: Mate) -> None:
        for _ in range(2):
            assert finn.post("/decline").status_code == 303
        page = words(finn.get())
        assert finn.status() == "declined" and "You said no" in page and "I’ve changed my mind" in page
        assert (
            "Lea can see that you said no." in page
            and "Lea</bdi> is still asking you for this share, until <time" in page
        )
        finn.post("/phone", phone=FINN)
        assert not SignInCode.objects.filter(subject=finn.share.pk).exists()
        assert finn.post("/reconsider").status_code == 303
        assert "Lea</bdi> is asking you for" in words(finn.get()) and finn.status() == "open"

    @pytest.mark.parametrize("end", ["kept", "over", "given back"])
    def test_that_was_declined_cannot_be_reopened_after_its_end(
        self, finn: Mate, order: Checkout, end: str
    ) -> None:
        finn.post("/decline")
        match end:
            case "kept":
                mate_shares.cancel(finn.share.pk)
            case "over":
                PaymentRequest.objects.filter(pk=finn.share.pk).update(expires_at=timezone.now())
            case _:
                refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        page = words(finn.get())
        assert "I’ve changed my mind" not in page
        assert ("can see that you said no" in page) == (end == "over"), "while the lead's page shows shares"
        assert finn.post("/reconsider").status_code == 303
        assert finn.status() == ("cancelled" if end == "kept" else "declined")

    def test_that_has_expired_says_so(self, finn: Mate) -> None:
        PaymentRequest.objects.filter(pk=finn.share.pk).update(expires_at=timezone.now())
        page = words(finn.get())
        assert "This link has expired" in page and finn.status() == "expired"
        assert "Lea asked you for <strong>£20.00</strong> until <time" in page
        assert (
            page.index("You have not been charged. You")
            < page.index("Lea asked you")
            < page.index("Lea covers your share.")
        )

    def test_that_the_lead_has_cancelled_says_so(self, finn: Mate) -> None:
        mate_shares.cancel(finn.share.pk)
        assert "Lea is no longer asking for this" in words(finn.get())

    def test_pauses_while_the_order_is_refunded(self, finn: Mate, order: Checkout) -> None:
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        assert "Nothing to pay now" in words(finn.get())
        assert mates.settled(finn.share) == "cancelled"
        assert "This order was refunded" in words(finn.get())

    def test_pauses_while_a_card_of_the_order_is_disputed(self, finn: Mate, order: Checkout) -> None:
        assert order.payment_id is not None
        client.call_bank("dispute", payment=order.payment_id)
        inquiries.open_inquiries([order.payment_id])
        tasks.answer_inquiries()
        page = words(finn.get())
        assert "A bank is reviewing a payment for this order" in page and "You have not been charged" in page

    def test_shows_the_progress_of_a_refund(self, finn: Mate, order: Checkout) -> None:
        finn.pay()
        mates.settled(finn.share)
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        page = words(finn.get())
        assert "<h1>£20.00 goes back to your card</h1>" in page and "On its way back" in page
        assert "goes back to your Mastercard ending 4444" in page
        assert mates.settled(finn.share) == "refunded"
        page = words(finn.get())
        assert "<h1>£20.00 goes back to your card</h1>" in page and "Your Mastercard ending 4444" in page
        stranger = words(Mate(finn.share).get())
        assert "This order was refunded" in stranger and "Your money" not in stranger

    def test_says_your_mate_if_the_lead_has_no_name(self, finn: Mate, order: Checkout) -> None:
        assert order.lead
        order.lead.name = ""
        order.lead.save()
        assert "Your mate</bdi> is asking you for" in words(finn.get())
