"""The bill of a split order as the lead sees it: the amount that she covers, each person's share, and live updates."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from checkout import captures, mate_shares, tasks
from checkout.group import share_claims
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from payments.inquiring import inquiries
from payments.providers.sandbox import client
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer, words

pytestmark = pytest.mark.django_db


def sums(page: str) -> list[str]:
    """Return the three totals of the bill, in the order in which the page shows them."""
    return re.findall(r'<dd class="amount">([^<]+)</dd>', page)


def seen(page: str) -> str:
    return str(re.findall(r'data-seen="([0-9a-f]{24})"', page)[0])


def text(page: str) -> str:
    """Return the visible text of a page, on one line."""
    return " ".join(re.sub(r"<[^>]+>", "", page).split())


@pytest.mark.rule("share.ends")
class TestAnExpiredShare:
    def test_ends_before_the_bill_is_shown(self, lead: Payer, finn: Mate) -> None:
        page = words(lead.get())
        before = seen(page)
        assert "Not paid yet" in page
        PaymentRequest.objects.filter(pk=finn.share.pk).update(expires_at=clock.now())
        answer = lead.get("/bill", seen=before)
        assert answer.status_code == 200 and finn.status() == "expired"
        assert "Link expired" in words(answer) and "You’re covering £90.00 for now" in text(words(answer))
        assert sums(words(answer)) == ["£60.00", "£30.00", "£0.00"], "who can pay no more is not out"
        PaymentRequest.objects.filter(status="open").update(expires_at=clock.now())
        page = words(lead.get())
        assert "Not paid yet" not in page and "Links work until" not in page
        assert lead.get("/bill", seen=seen(page)).status_code == 204

    def test_stays_open_during_a_dispute_with_one_query_for_it(
        self, lead: Payer, order: Checkout, django_assert_num_queries: Callable[..., Any]
    ) -> None:
        assert order.payment_id is not None
        client.call_bank("dispute", payment=order.payment_id)
        inquiries.open_inquiries([order.payment_id])
        tasks.answer_inquiries()
        PaymentRequest.objects.update(expires_at=clock.now())
        page = words(lead.get())
        assert "Paused" in page
        with django_assert_num_queries(4):
            assert lead.get("/bill", seen=seen(page)).status_code == 204

    def test_costs_one_lock_for_all_expired_shares(
        self, order: Checkout, django_assert_num_queries: Callable[..., Any]
    ) -> None:
        PaymentRequest.objects.update(expires_at=clock.now())
        shares = list(order.payment_requests.all())
        with CaptureQueriesContext(connection) as done:
            assert mate_shares.expire_all_late(order, shares, clock.now())
        assert sum("FOR NO KEY UPDATE" in query["sql"] for query in done) == 1
        assert not order.payment_requests.filter(status="open").exists()
        ended, now = list(order.payment_requests.all()), clock.now()
        with django_assert_num_queries(0):
            assert not mate_shares.expire_all_late(order, ended, now)


def parts(page: str) -> list[tuple[str, str, str, str]]:
    """Return the parts of the bar: each with its look, its width in per cent, its letters and its icon."""
    found = re.findall(
        r'<svg class="look-(\w+) person-\d+" x="[\d.]+%" width="([\d.]+)%"(.*?)</svg>', page, re.S
    )
    return [
        (
            look,
            width,
            "".join(re.findall(r"<text[^>]*>([^<]*)", drawn)),
            "".join(re.findall(r"svg#(\w+)", drawn)),
        )
        for look, width, drawn in found
    ]


def whole(page: str) -> float:
    return round(sum(float(width) for _look, width, _letters, _icon in parts(page)), 2)


class TestTheBar:
    def test_has_a_part_for_each_share_by_amount_and_status(
        self, lead: Payer, finn: Mate, amy: PaymentRequest
    ) -> None:
        page = words(lead.get())
        assert [part[0] for part in parts(page)] == ["mine", "out", "out"] and whole(page) == 100
        assert [part[2] for part in parts(page)] == ["You", "F", "A"]
        assert [part[1] for part in parts(page)] == ["44.444", "22.222", "33.333"]
        share_claims.claim_share(finn.share.pk, claim="x" * 64)
        assert parts(words(lead.get()))[1] == ("taken", "22.222", "F", "ring")
        share_claims.release_claim(finn.share.pk, claim="x" * 64)
        mates.pay(finn.share)
        assert parts(words(lead.get()))[1] == ("taken", "22.222", "F", "ring")
        mates.settled(finn.share)
        assert parts(words(lead.get()))[1] == ("paid", "22.222", "F", "check")
        mate_shares.decline(amy.pk)
        assert parts(words(lead.get()))[2] == ("mine", "33.333", "A", "cross")
        mate_shares.cancel(amy.pk)
        page = words(lead.get())
        assert parts(page)[2] == ("mine", "33.333", "A", "") and whole(page) == 100

    @pytest.mark.parametrize(("people", "letters"), [(8, True), (9, False)])
    def test_has_no_letters_with_nine_people_or_more(
        self, unpaid: Checkout, people: int, letters: bool
    ) -> None:
        lea = Payer(unpaid)
        lea.pay(split="equal", people=str(people), your_name="Lea")
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        mates.pay(unpaid.payment_requests.get(position=2))
        page = words(lea.get())
        assert len(parts(page)) == people and whole(page) == 100
        assert bool("".join(part[2] + part[3] for part in parts(page))) == letters
        assert ("group-bar-many" in page) != letters

    def test_has_no_part_for_a_lead_who_pays_nothing(self, unpaid: Checkout) -> None:
        lea = Payer(unpaid)
        lea.pay(split="own", name=["Finn"], amount=["90"], your_name="Lea")
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        assert parts(words(lea.get())) == [("out", "100.000", "F", "")]


@pytest.mark.rule("share.borne")
class TestAmountTheLeadCovers:
    def test_is_the_headline_and_the_sums_add_up_to_it(self, lead: Payer, finn: Mate) -> None:
        page = words(lead.get())
        assert "You’re covering £90.00 for now" in text(page) and sums(page) == ["£40.00", "£50.00", "£0.00"]
        assert "When a mate pays, their share goes back to your Visa ending 4242." in page
        finn.pay()
        assert mates.settled(finn.share) == "reimbursed"
        page = words(lead.get())
        assert "You’re covering £70.00 for now" in text(page) and sums(page) == ["£40.00", "£30.00", "£20.00"]

    def test_is_their_own_share_once_all_have_paid(
        self, lead: Payer, amy: PaymentRequest, finn: Mate
    ) -> None:
        for share, card in ((finn.share, mates.FINNS), (amy, mates.AMYS)):
            mates.pay(share, card)
            mates.settled(share)
        page = words(lead.get())
        assert "You’re covering £40.00, your own share" in text(page) and "Everyone has paid" in page
        assert "Your mates’ payments are back on your Visa ending 4242." in page
        assert "Your mates’ £50.00 came back to your card. The order cost you £40.00." in text(page)
        assert "data-live" not in page and "http-equiv" not in page, "nothing is left to happen"

    def test_is_the_whole_order_if_no_mate_is_left_to_pay(self, lead: Payer, order: Checkout) -> None:
        for share in order.payment_requests.all():
            mate_shares.cancel(share.pk)
        page = words(lead.get())
        assert "You’re covering £90.00" in text(page) and "for now" not in text(page)
        assert sums(page) == ["£90.00", "£0.00", "£0.00"] and "came back to your card" not in text(page)
        assert page.count("You cover it") == 2 and "so this amount stays on your Visa ending 4242." in page

    def test_is_not_called_their_own_share_if_it_includes_a_mates_share(
        self, lead: Payer, finn: Mate, amy: PaymentRequest
    ) -> None:
        assert "Your own share is £40.00." in text(words(lead.get()))
        mate_shares.cancel(amy.pk)
        page = text(words(lead.get()))
        assert "Your own share is" not in page and "When a mate pays, their share goes back to" in page

    def test_says_when_a_share_is_reimbursed(self, lead: Payer, finn: Mate, settings: Settings) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
        mates.pay(finn.share)
        mates.pump(finn.share.checkout_id)
        page = words(lead.get())
        assert "goes back by" in page and "Back on your card" not in page
        assert "Your mates’ payments go back" not in page, "Amy is still asked"
