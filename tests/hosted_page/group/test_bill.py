"""The group's bill as its lead sees it: what she bears, person by person, kept true."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from checkout import sharing, tasks
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from payments.outside import inquiries
from payments.providers.sandbox import client
from tests import mates
from tests.hosted_page.browsers import Mate, Payer, words

pytestmark = pytest.mark.django_db


def sums(page: str) -> list[str]:
    """The three sums, in their order."""
    return re.findall(r'<dd class="amount">([^<]+)</dd>', page)


def seen(page: str) -> str:
    return str(re.findall(r'data-seen="([0-9a-f]{24})"', page)[0])


def text(page: str) -> str:
    """What is read, on one line."""
    return " ".join(re.sub(r"<[^>]+>", "", page).split())


@pytest.fixture
def amy(order: Checkout) -> PaymentRequest:
    return order.payment_requests.get(position=3)


@pytest.mark.rule("share.ends")
class TestALateShare:
    def test_ends_before_the_lead_reads_of_it(self, lead: Payer, finn: Mate) -> None:
        page = words(lead.get())
        before = seen(page)
        assert "Not paid yet" in page
        PaymentRequest.objects.filter(pk=finn.share.pk).update(expires_at=clock.now())
        answer = lead.get("/bill", seen=before)
        assert answer.status_code == 200 and finn.status() == "expired"
        assert "Link ended" in words(answer) and "You bear £90.00 now" in text(words(answer))
        PaymentRequest.objects.filter(status="open").update(expires_at=clock.now())
        page = words(lead.get())
        assert "Not paid yet" not in page and "Links work until" not in page
        assert lead.get("/bill", seen=seen(page)).status_code == 204

    def test_stays_while_a_bank_looks_into_the_order_and_costs_one_look_at_that(
        self, lead: Payer, order: Checkout, django_assert_num_queries: Callable[..., Any]
    ) -> None:
        assert order.payment_id is not None
        client.ask("dispute", payment=order.payment_id)
        inquiries.open_about([order.payment_id])
        tasks.answer_inquiries()
        PaymentRequest.objects.update(expires_at=clock.now())
        page = words(lead.get())
        assert "Not paid yet" in page
        with django_assert_num_queries(3):
            assert lead.get("/bill", seen=seen(page)).status_code == 204

    def test_costs_one_lock_for_all_that_are_late(
        self, order: Checkout, django_assert_num_queries: Callable[..., Any]
    ) -> None:
        PaymentRequest.objects.update(expires_at=clock.now())
        shares = list(order.payment_requests.all())
        with CaptureQueriesContext(connection) as done:
            assert sharing.end_all_late(order, shares, clock.now())
        assert sum("FOR UPDATE" in query["sql"] for query in done) == 1
        assert not order.payment_requests.filter(status="open").exists()
        assert not order.payment_requests.filter(status="open").exists()
        with django_assert_num_queries(0):
            assert not sharing.end_all_late(order, list(order.payment_requests.none()), clock.now())


@pytest.mark.rule("share.borne")
class TestWhatTheLeadBears:
    def test_is_the_headline_and_the_sums_explain_it(self, lead: Payer, finn: Mate) -> None:
        page = words(lead.get())
        assert "You bear £90.00 now" in text(page) and sums(page) == ["£40.00", "£50.00", "£0.00"]
        assert "When a mate pays, their share goes back to your Visa ending 4242." in page
        finn.pay()
        assert mates.settled(finn.share) == "reimbursed"
        page = words(lead.get())
        assert "You bear £70.00 now" in text(page) and sums(page) == ["£40.00", "£30.00", "£20.00"]

    def test_is_their_own_share_once_all_have_paid(
        self, lead: Payer, amy: PaymentRequest, finn: Mate
    ) -> None:
        for share, card in ((finn.share, mates.FINNS), (amy, mates.AMYS)):
            mates.pay(share, card)
            mates.settled(share)
        page = words(lead.get())
        assert "You bear £40.00, your own share" in text(page) and "All have paid" in page
        assert "What your mates paid is back on your Visa ending 4242." in page
        assert "data-live" not in page and "http-equiv" not in page, "nothing is left to happen"

    def test_stays_with_her_if_nobody_is_left_to_pay(self, lead: Payer, order: Checkout) -> None:
        for share in order.payment_requests.all():
            sharing.cancel(share.pk)
        page = words(lead.get())
        assert "You bear £90.00 now" in text(page) and sums(page) == ["£90.00", "£0.00", "£0.00"]
        assert page.count("Stays with you") == 2 and "It stays on your Visa ending 4242." in page

    def test_says_when_a_share_goes_back(self, lead: Payer, finn: Mate, settings: Settings) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
        mates.pay(finn.share)
        mates.pump(finn.share.checkout_id)
        page = words(lead.get())
        assert "goes back by" in page and "Back on your card" not in page
        assert "What your mates paid goes back" not in page, "Amy is still asked"
