"""The lead's bill and the QR page of the group link while an operator has stopped the shop."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from checkout import mate_shares
from checkout.models import Checkout, PaymentRequest
from tests import factories, mates
from tests.hosted_page.browsers import FINN, Mate, Payer, words
from tests.hosted_page.group.test_bill import seen, text
from tests.hosted_page.group.test_dispute import OFFERS, main, offered
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.sms.test_outbox import a_day_later
from tests.hosted_page.status.reading import plain

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("posted"),
    pytest.mark.rule("operator.stop", "bill.live"),
]
STOPPED = "Acme Tickets can’t take payments right now, so no mate can pay a share."


def resume(order: Checkout) -> None:
    factories.stop(order.merchant, is_stopped=False)


class TestTheBill:
    def test_says_that_it_is_paused_and_offers_no_link(
        self, lead: Payer, finn: Mate, order: Checkout
    ) -> None:
        lead.post("/text-share", share=str(finn.share.pk), phone=FINN)
        a_day_later()
        PaymentRequest.objects.update(expires_at=timezone.now() + timedelta(hours=2))
        assert offered(main(lead.get())) == list(OFFERS) and "Add a mate" in main(lead.get())
        factories.stop(order.merchant)
        page = main(lead.get())
        assert offered(page) == [] and 'class="last-day"' not in page and "Add a mate" not in page
        assert STOPPED in plain(page) and "The links still expire on " in plain(page)
        assert "Not paid yet" not in text(page) and text(page).count("Paused") == 3
        assert "Rename" in page and "Cover" in page, "what needs no link stays"
        resume(order)
        page = main(lead.get())
        assert offered(page) == list(OFFERS) and "Paused" not in page and "Not paid yet" in text(page)

    def test_that_is_open_shows_the_stop_and_its_end(self, lead: Payer, finn: Mate, order: Checkout) -> None:
        page = words(lead.get())
        factories.stop(None)
        answer = lead.get("/bill", seen=seen(page), no="")
        assert (
            answer.status_code == 200 and "Paused for now" in words(answer) and "data-live" in words(answer)
        )
        assert offered(words(answer)) == []
        assert lead.get("/bill", seen=seen(words(answer)), no="").status_code == 204
        factories.stop(None, is_stopped=False)
        after = lead.get("/bill", seen=seen(words(answer)), no="")
        assert after.status_code == 200 and "One link for everyone" in words(after)

    def test_does_not_offer_to_ask_a_mate_again(
        self, lead: Payer, finn: Mate, amy: PaymentRequest, order: Checkout
    ) -> None:
        finn.post("/decline")
        mate_shares.cancel(amy.pk)
        assert "Yes, ask again" in main(lead.get()) and "data-live" not in words(lead.get())
        factories.stop(order.merchant)
        page = words(lead.get())
        assert 'id="said-no"' not in page and "Yes, ask again" not in page and "Said no" in page
        assert "Paused for now" in page and "data-live" in page, "the page shows the end of the stop"

    def test_says_nothing_of_a_stop_once_every_mate_has_paid(
        self, lead: Payer, finn: Mate, amy: PaymentRequest, order: Checkout
    ) -> None:
        for share, card in ((finn.share, mates.FINNS), (amy, mates.AMYS)):
            mates.pay(share, card)
            mates.settled(share)
        factories.stop(order.merchant)
        page = words(lead.get())
        assert "Paused" not in page and "Back on your card" in page

    def test_says_why_a_text_was_not_sent(self, lead: Payer, finn: Mate, order: Checkout) -> None:
        factories.stop(order.merchant)
        refused = lead.post("/text-share", share=str(finn.share.pk), phone=FINN)
        assert refused.status_code == 422
        assert "This shop is not taking payments now. Try again later." in words(refused)

    def test_refuses_to_ask_a_mate_again_or_another_mate(
        self, lead: Payer, finn: Mate, order: Checkout
    ) -> None:
        finn.post("/decline")
        factories.stop(order.merchant)
        again = lead.post("/ask-again", share=str(finn.share.pk))
        added = lead.post("/add-mate", new_name="Eve", new_amount="5")
        for refused in (again, added):
            assert refused.status_code == 422
            assert "This shop is not taking payments now. Try again later." in words(refused)
        assert finn.status() == "declined" and order.payment_requests.count() == 2

    def test_an_update_costs_no_more_statements(
        self, lead: Payer, finn: Mate, order: Checkout, django_assert_num_queries: Callable[..., Any]
    ) -> None:
        factories.stop(order.merchant)
        before = seen(words(lead.get()))
        with django_assert_num_queries(3):
            assert lead.get("/bill", seen=before).status_code == 204


def test_the_qr_page_leads_back_to_the_bill(lead: Payer, order: Checkout) -> None:
    guest = Guest(order)
    qr = f"{guest.path}/qr"
    assert lead.client.get(qr).status_code == 200
    factories.stop(order.merchant)
    assert lead.client.get(qr)["Location"] == f"/pay?id={order.pk}"
