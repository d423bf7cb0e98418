"""A sign-in ends while a page is open: the lead's bill, a receipt, or an order in progress."""

import html
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from checkout import refunds
from checkout.models import Checkout, PaymentRequest
from hosted_page.models import SmsMessage
from payments import operator_stops
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import FINN, PHONE, TIME, Mate, Payer, shown_code, words
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.status.test_receipt import receipt
from tests.outside import settle

pytestmark = [pytest.mark.django_db, pytest.mark.rule("sign_in.said")]
WARNS = re.compile(r'data-stay="(\d+)"')
REFRESHES = re.compile(r'http-equiv="refresh" content="\d+; url=([^"]+)"')
POLLS = {"HX-Request": "true"}
PHONE_STEP = "See your bill"
STRANGER = "Did you pay this?"
Pass = Callable[[int], None]


@pytest.fixture
def let_pass(monkeypatch: pytest.MonkeyPatch) -> Pass:
    """Return a function that moves the sign-in clock forward by some seconds. The seconds of several calls add up."""
    now, passed = time.time, [0]

    def later(seconds: int) -> None:
        passed[0] += seconds
        monkeypatch.setattr("django.core.signing.time.time", lambda: now() + passed[0])

    return later


def seconds_left(page: str) -> int:
    return int(WARNS.findall(page)[0])


def prolongs(answer: Any) -> bool:
    return any(name.startswith("payer_") for name in answer.cookies)


@pytest.mark.usefixtures("order")
class TestTheBill:
    def test_shows_the_end_of_the_sign_in_with_and_without_javascript(self, lead: Payer) -> None:
        page = words(lead.get())
        assert seconds_left(page) == 900 and f'data-action="/pay/stay?id={lead.checkout.pk}"' in page
        assert len(re.findall(rf"You are signed in until {TIME}\.", page)) == 2
        assert "js/session.js" in page

    def test_stays_signed_in_past_fifteen_minutes_by_a_tap(self, lead: Payer, let_pass: Pass) -> None:
        let_pass(14 * 60)
        answer = lead.post("/stay")
        assert answer.status_code == 200 and answer.json()["lasts"] == 900
        let_pass(14 * 60)
        assert lead.get("/bill", seen="").status_code == 200, "it is live in the 28th minute"
        assert "You’re covering" in words(lead.get())

    def test_is_replaced_by_the_phone_step_with_a_reason(self, lead: Payer, let_pass: Pass) -> None:
        let_pass(901)
        assert lead.get("/bill", seen="")["HX-Refresh"] == "true"
        page = words(lead.get())
        assert "You are signed out" in page and "Sign in again to see this page." in page
        assert PHONE_STEP in page and STRANGER not in page and "Finn" not in page
        assert lead.post("/stay").status_code == 403
        # Otherwise the number must wait for its next code.
        SmsMessage.objects.all().delete()
        lead.sign_in()
        assert "You’re covering" in words(lead.get())

    def test_still_asks_a_stranger_for_a_number(self, lead: Payer, let_pass: Pass) -> None:
        assert STRANGER in words(Payer(lead.checkout).get())
        let_pass(901)
        other = Payer(lead.checkout)
        assert STRANGER in words(other.get()) and other.post("/stay").status_code == 403
        let_pass(3600)
        assert STRANGER in words(lead.get()), "after an hour nobody knows whose browser it is"

    def test_that_reloads_automatically_does_not_extend_the_sign_in(
        self, lead: Payer, let_pass: Pass
    ) -> None:
        address = html.unescape(REFRESHES.findall(words(lead.get()))[0])
        let_pass(600)
        looked = lead.client.get(address)
        assert seconds_left(words(looked)) in range(295, 302) and not prolongs(looked)
        let_pass(301)
        assert "You are signed out" in words(lead.client.get(address))

    def test_that_the_lead_opens_extends_the_sign_in(self, lead: Payer, let_pass: Pass) -> None:
        offered = re.findall(r'<a class="link" href="([^"]+)">Stay signed in', words(lead.get()))
        for address in (f"/pay?id={lead.checkout.pk}", *offered):
            let_pass(800)
            assert seconds_left(words(lead.client.get(html.unescape(address)))) == 900
        assert len(offered) == 1


class TestAPageThatUpdatesItself:
    def test_of_an_order_shows_the_end_of_the_sign_in_without_extending_it(
        self, lead: Payer, order: Checkout, let_pass: Pass
    ) -> None:
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        page = words(lead.get())
        assert seconds_left(page) == 900
        let_pass(600)
        for looked in (lead.client.get(f"/pay?id={order.pk}", headers=POLLS), lead.get(looks="1")):
            assert looked.status_code == 200 and not prolongs(looked)
        let_pass(301)
        looked = words(lead.client.get(f"/pay?id={order.pk}", headers=POLLS))
        assert "You are signed out. Sign in to see your receipt" in looked and STRANGER not in looked

    def test_of_a_mate_extends_the_sign_in_only_by_the_mates_action(self, finn: Mate, let_pass: Pass) -> None:
        finn.pay()
        mates.settled(finn.share)
        let_pass(800)
        assert seconds_left(words(finn.get())) == 900
        let_pass(800)
        assert finn.post("/stay").status_code == 200
        let_pass(800)
        looked = finn.client.get(finn.path, headers=POLLS)
        assert STRANGER not in words(looked) and not prolongs(looked)
        let_pass(101)
        page = words(finn.get())
        assert "You are signed out. Sign in to see your receipt" in page and "data-stay" not in page
        stranger = Mate(finn.share)
        assert STRANGER in words(stranger.get()) and stranger.post("/stay").status_code == 403


@pytest.mark.rule("sign_in.payer_returns", "page.receipt")
class TestAShareThatWasPaidByTheGroupLink:
    """A share that Finn paid through the group link. After the payment, only his sign-in identifies him."""

    @pytest.fixture
    def zoe(self, order: Checkout) -> Guest:
        guest = Guest(order)
        guest.take(2)
        guest.pay(2)
        assert mates.settled(PaymentRequest.objects.get(position=2)) == "reimbursed"
        # Otherwise the number must wait for its next code.
        SmsMessage.objects.all().delete()
        return guest

    @pytest.mark.parametrize("status", ["captured", "refunding", "refunded"])
    def test_can_be_seen_again_after_a_new_sign_in(
        self, zoe: Guest, order: Checkout, let_pass: Pass, status: str
    ) -> None:
        if status != "captured":
            mates.give_back(order)
            mates.pump(order.pk, rounds=5 if status == "refunded" else 0)
        let_pass(901)
        page = words(zoe.get("/2"))
        assert "You are signed out. Sign in to see your receipt" in page and "4242" not in page
        assert f'href="{zoe.path}/2?sign_in=1"' in page
        refused = zoe.post("/2/receipt")
        assert refused.status_code == 403 and "Sign in again" in words(refused)
        assert "Sign in again to see this page." in words(zoe.get("/2?sign_in=1"))
        code_page = zoe.client.get(zoe.post("/2/phone", phone=FINN)["Location"])
        zoe.post("/2/code", code=shown_code(code_page))
        assert receipt(words(zoe.get("/2")))[0] == "Receipt"

    def test_can_be_found_later_from_the_group_page(self, zoe: Guest, let_pass: Pass) -> None:
        let_pass(4500)
        group = zoe.client.get(zoe.get("/2")["Location"])
        assert "Finn’s share is paid" in words(group) and "just taken" not in words(group)
        sign_in = re.findall(r'href="([^"]+)">Did you pay this\? Sign in to see your receipt', words(group))
        assert sign_in == [f"{zoe.path}/2?sign_in=1"]
        code_page = zoe.client.get(zoe.post("/2/phone", phone=FINN)["Location"])
        zoe.post("/2/code", code=shown_code(code_page))
        assert receipt(words(zoe.get("/2")))[0] == "Receipt"

    def test_can_be_found_from_the_group_page_after_a_refund(
        self, zoe: Guest, order: Checkout, let_pass: Pass
    ) -> None:
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        settle(order)
        let_pass(4500)
        group = words(zoe.client.get(zoe.get("/2")["Location"]))
        assert "This order was refunded" in group and "Share 2" in group and "is paid" not in group
        assert f'href="{zoe.path}/2?sign_in=1"' in group
        code_page = zoe.client.get(zoe.post("/2/phone", phone=FINN)["Location"])
        zoe.post("/2/code", code=shown_code(code_page))
        assert receipt(words(zoe.get("/2")))[0] == "Receipt"

    @pytest.mark.rule("group.privacy")
    def test_shows_a_stranger_only_the_group_page(self, zoe: Guest, order: Checkout) -> None:
        stranger = Guest(order)
        for step in ("", "/card", "/confirmed"):
            assert stranger.get(f"/2{step}")["Location"] == f"{zoe.path}?taken=2"
        for step in ("/receipt", "/opt-in", "/decline", "/stay", "/receipt?sign_in=1"):
            assert stranger.post(f"/2{step}")["Location"] == f"{zoe.path}?taken=2"
        asked = stranger.get("/2?sign_in=1")
        code_page = stranger.client.get(stranger.post("/2/phone", phone=PHONE)["Location"])
        wrong = stranger.post("/2/code", code="000000")
        again = stranger.post("/2/resend")
        operator_stops.suspend(order.merchant, reason="A question.")
        for answer in (asked, code_page, wrong, again, stranger.post("/2/phone", phone=PHONE)):
            page = words(answer)
            assert answer.status_code in (200, 422)
            assert not any(hidden in page for hidden in ("£20.00", "Finn", "0456", "4242")), page
        assert "if that number was used to pay and" in words(code_page) and shown_code(code_page) == ""
        assert stranger.post("/3/phone", phone=PHONE)["Location"] == f"{zoe.path}?taken=3", "nobody has paid"
