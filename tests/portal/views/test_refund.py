import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from checkout import refunds, tasks
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.proof import ledger_proof
from payments.inquiring import inquiries
from payments.models import Inquiry, Operation
from payments.providers.sandbox import client as bank_client
from portal.models import Membership
from tests import mates
from tests.factories import CAUSE
from tests.outside import decide, dispute
from tests.portal import stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(owner: Membership) -> Client:
    return stage.browser(owner)


def address(checkout: Checkout) -> str:
    return f"/portal/checkouts/{checkout.pk}/refund"


def ref_in(page: Any) -> str:
    found = re.search(r'name="ref" value="([^"]+)"', page.content.decode())
    assert found
    return found[1]


class TestRefund:
    @pytest.mark.rule("refund.portal")
    def test_takes_two_steps_and_makes_one_refund(self, client: Client, captured: Checkout) -> None:
        first = client.get(address(captured))
        ref = ref_in(first)
        second = client.post(address(captured), {"step": "check", "ref": ref, "reason": "Show moved"})
        words = second.content.decode()
        assert "Step 2 of 2" in words and ref_in(second) == ref
        asked = words.partition('class="ask"')[2].partition("</section>")[0]
        assert asked.count(ref) == 1 and "eference" not in asked, "nobody copies it"
        assert 'maxlength="500" value="Show moved" readonly' in asked and "(optional)" not in asked

    @pytest.mark.rule("api.document")
    def test_stores_a_pasted_reason_without_tabs(self, client: Client, captured: Checkout) -> None:
        ref = ref_in(client.get(address(captured)))
        client.post(address(captured), {"step": "refund", "ref": ref, "reason": "Show\tmoved\r\nto May"})
        assert Refund.objects.get().reason == "Show moved to May"

    def test_keeps_the_reason_from_the_second_step_back_to_the_first(
        self, client: Client, captured: Checkout
    ) -> None:
        ref = ref_in(client.get(address(captured)))
        back = client.post(address(captured), {"step": "change", "ref": ref, "reason": "Show moved"})
        assert 'maxlength="500" value="Show moved"' in back.content.decode()

    def test_names_each_card(self, client: Client, captured: Checkout) -> None:
        assert "£90.00" in client.get(address(captured)).content.decode()
        assert "Visa ending 4242" in client.get(address(captured)).content.decode()

    @pytest.mark.rule("refund.portal")
    def test_from_a_stale_page_is_refused_with_a_notice(self, client: Client, captured: Checkout) -> None:
        ref = ref_in(client.get(address(captured)))
        refunds.accept(captured.merchant, captured.pk, ref="elsewhere", cause=CAUSE)
        done = client.post(address(captured), {"step": "refund", "ref": ref}, follow=True)
        assert "is already on its way" in done.content.decode()
        assert Refund.objects.get().merchant_refund_ref == "elsewhere"

    def test_of_a_held_order_is_refused(self, client: Client, held: Checkout) -> None:
        answer = client.get(address(held), follow=True)
        assert "only held" in answer.content.decode()
        client.post(address(held), {"step": "refund", "ref": "portal_01a1ff87-30a0-763f-ad37-2dcca246cbf9"})
        assert not Refund.objects.exists()

    def test_under_a_foreign_reference_is_refused(self, client: Client, captured: Checkout) -> None:
        for ref in ("r-1", f"portal_{uuid4()}\n"):
            client.post(address(captured), {"step": "refund", "ref": ref})
        assert not Refund.objects.exists()

    def test_keeps_a_reason_that_is_too_long(self, client: Client, captured: Checkout) -> None:
        page = client.post(address(captured), {"step": "check", "ref": "", "reason": "x" * 501})
        assert "field-error" in page.content.decode() and "x" * 501 in page.content.decode()

    @pytest.mark.parametrize(
        ("reason", "says", "helps"),
        [
            ("card_closed", "The card’s account is closed.", "Sending the refund again will not help."),
            ("lost_or_stolen_card", "The card was reported lost or stolen.", "Pay the customer another way"),
            (
                "insufficient_balance",
                "Insufficient balance.",
                "Try again: the bank gets a new refund request.",
            ),
            ("refused", "", "Try again"),
        ],
    )
    def test_that_fails_says_what_to_do(
        self, client: Client, captured: Checkout, reason: str, says: str, helps: str
    ) -> None:
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        Operation.objects.filter(kind="refund").update(
            state="failed", reason=reason, ended_at=captured.captured_at, next_attempt_at=None
        )
        Checkout.objects.filter(pk=captured.pk).update(status="captured")
        Refund.objects.update(status="failed", failure_reason=reason)
        words = client.get(f"/portal/checkouts/{captured.pk}").content.decode()
        assert "The bank refused the refund of £90.00<" in words and "The refund was requested at " in words
        assert says in words and helps in words
        assert "Refund failed</span>" in words
        asked = " ".join(client.get(address(captured)).content.decode().split())
        again = 'We ask it again to pay back <strong class="amount">£90.00</strong> to Visa ending 4242.'
        assert " ".join(f"The bank refused this refund before. {says} {again}".split()) in asked
        assert words.count(f'{address(captured)}"') == 1, "one button, where it helps in the notice"
        assert ("button-pen" in words) == ("Try again" in helps)
        assert ("Try again" in client.get("/portal").content.decode()) == ("Try again" in helps)
        assert "1 refund" not in client.get("/portal").content.decode()
        assert "failed" in client.get("/portal").content.decode()

    def test_of_a_disputed_order_is_refused_and_the_page_says_what_to_do(
        self, client: Client, captured: Checkout
    ) -> None:
        assert captured.payment_id is not None
        page, facts = f"/portal/checkouts/{captured.pk}", {"step": "refund", "ref": f"portal_{uuid4()}"}
        bank_client.call_bank("dispute", payment=captured.payment_id)
        inquiries.open_inquiries([captured.payment_id])
        tasks.answer_inquiries()
        words = client.get(page).content.decode()
        assert "The customer disputes £90.00" in words and "Send your evidence to" in words
        assert "Disputed" in words and "accept it" in words and "Don’t refund it as well" in words
        assert "The bank keeps it until the dispute is decided" in words and "Posted: ." not in words
        assert f"{page}/refund" not in words, "no refund is offered"
        disputed = "A disputed order can’t be refunded until the bank has decided."
        opened = client.get(address(captured), follow=True).content.decode()
        assert disputed in opened and "Only a captured order" not in opened
        refused = client.post(address(captured), facts, follow=True).content.decode()
        assert disputed in refused and not Refund.objects.exists()
        bank_client.call_bank("decide", payment=captured.payment_id, is_won=False)
        Inquiry.objects.update(due_at=captured.captured_at)
        tasks.answer_inquiries()
        lost = client.get(page).content.decode()
        assert "The customer keeps £90.00" in lost and "The dispute over £90.00 is lost" in lost
        opened = client.get(address(captured), follow=True).content.decode()
        assert "The bank has given the money back after a dispute. No refund is possible." in opened

    @pytest.mark.rule("dispute.lost")
    @pytest.mark.usefixtures("posted")
    def test_after_a_mates_lost_dispute_refunds_the_other_cards(
        self, client: Client, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0])
        assert mates.settled(shares[0]) == "reimbursed"
        shares[0].refresh_from_db()
        found = dispute(shares[0].payment)
        page = f"/portal/checkouts/{order.pk}"
        assert f"{page}/refund" not in client.get(page).content.decode(), "while it is open"
        decide(found, is_won=False)
        words = client.get(page).content.decode()
        assert "You can still refund the rest." in words and ">Refund £70.00</a>" in words
        asked = client.get(f"{page}/refund").content.decode()
        assert "The rest goes back" in re.sub(r"\s+", " ", asked) and "to one mate’s" not in asked
        facts = {"step": "refund", "ref": f"portal_{uuid4()}"}
        assert client.post(address(order), facts).status_code == 302
        mates.pump(order.pk, rounds=3)
        order.refresh_from_db()
        assert order.status == "refunded" and ledger_proof.find_breaches() == []

    @pytest.mark.rule("dispute.no_refund")
    @pytest.mark.usefixtures("posted")
    def test_after_a_dispute_that_took_all_is_refused(self, client: Client, captured: Checkout) -> None:
        decide(dispute(captured.payment), is_won=False)
        facts = {"step": "refund", "ref": f"portal_{uuid4()}"}
        said = client.post(address(captured), facts, follow=True).content.decode()
        assert "The bank has given the money back after a dispute." in said and not Refund.objects.exists()

    def test_shows_its_progress_until_it_is_settled(self, client: Client, captured: Checkout) -> None:
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        page = f"/portal/checkouts/{captured.pk}"
        planned = client.get(page).content.decode()
        assert "The refund is on its way" in planned and "The bank has not confirmed it yet." in planned
        assert "places-card" in planned and "The refund is on its way back." in planned
        tasks.finish_operations()
        sent = client.get(page).content.decode()
        assert "The bank has received it." in sent and "The refund is on its way back." in sent
        Operation.objects.filter(state="pending").update(next_attempt_at="2020-01-01T00:00Z")
        tasks.finish_operations()
        words = client.get(page).content.decode()
        assert "Refunded" in words and "every 2s" not in words
