"""The lead's actions on the bill, and the updates of a bill that a browser has open."""

from collections.abc import Callable
from typing import Any

import pytest

from checkout import mate_shares, refunds
from checkout.models import Checkout, PaymentRequest
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer, words
from tests.hosted_page.group.test_bill import seen

pytestmark = pytest.mark.django_db


class TestTheLead:
    @pytest.mark.rule("share.bends")
    def test_can_rename_ask_again_and_keep_a_share(self, lead: Payer, finn: Mate) -> None:
        share = {"share": str(finn.share.pk)}
        answer = lead.post("/rename-share", new_name="Fionn\r\n ", **share)
        assert answer.status_code == 303 and answer["Location"].endswith(f"#share-{finn.share.pk}")
        finn.post("/decline")
        assert lead.post("/ask-again", **share)["Location"].endswith(f"#link-{finn.share.pk}")
        assert f'id="link-{finn.share.pk}"' in words(lead.get()), "the line with the new link opens"
        assert (finn.status(), finn.share.name) == ("open", "Fionn")
        assert "This link has been replaced" in words(finn.get())
        as_lead = words(lead.client.get(finn.path))
        assert "This link has been replaced" in as_lead and "You made a new link for this share." in as_lead
        assert f'href="/pay?id={lead.checkout.pk}"' in as_lead and "for it" not in as_lead
        assert Mate(finn.share).get().status_code == 200
        lead.post("/cancel-share", **share)
        assert finn.status() == "cancelled" and "You cover it" in words(lead.get())

    @pytest.mark.rule("share.bends")
    @pytest.mark.parametrize("act", ["/rename-share", "/ask-again", "/cancel-share"])
    def test_sees_why_a_share_that_is_being_paid_cannot_be_changed(
        self, lead: Payer, finn: Mate, act: str
    ) -> None:
        mates.pay(finn.share)
        refused = lead.post(act, share=str(finn.share.pk), new_name="x")
        assert refused.status_code == 422 and "Finn is paying this share now" in words(refused)
        assert f"url=/pay?id={lead.checkout.pk}" in words(refused), "the form's address is no page"
        mates.settled(finn.share)
        assert "Finn has already paid this share" in words(
            lead.post(act, share=str(finn.share.pk), new_name="x")
        )
        assert finn.share.name == "Finn"

    @pytest.mark.parametrize("act", ["/rename-share", "/ask-again", "/cancel-share", "/text-share"])
    def test_is_the_only_one_who_can_change_shares(
        self, lead: Payer, finn: Mate, amy: PaymentRequest, act: str
    ) -> None:
        fields = {"share": str(amy.pk), "new_name": "x", "phone": "07700 900456"}
        finn.sign_in()
        stranger = Payer(lead.checkout)
        for client in (finn.client, stranger.client):
            answer = client.post(f"/pay{act}?id={lead.checkout.pk}", fields)
            assert answer.status_code == 403 and "This was not saved, and you were not charged." in words(
                answer
            )
        assert lead.post(act, share="x").status_code == 303
        amy.refresh_from_db()
        assert (amy.status, amy.name, amy.phone) == ("open", "Amy", "")

    def test_cannot_keep_a_share_that_is_paid(self, lead: Payer, finn: Mate) -> None:
        finn.pay()
        mates.settled(finn.share)
        assert lead.post("/cancel-share", share=str(finn.share.pk)).status_code == 422
        assert finn.status() == "reimbursed"

    def test_must_sign_in_if_nothing_was_saved(self, lead: Payer, finn: Mate) -> None:
        lead.client.cookies.clear()
        answer = lead.post("/cancel-share", share=str(finn.share.pk))
        assert answer.status_code == 403 and "Sign in again" in words(answer)
        assert finn.status() == "open"


@pytest.mark.rule("bill.live")
class TestTheOpenPage:
    def test_gets_a_204_if_nothing_has_changed(self, lead: Payer, finn: Mate) -> None:
        page = words(lead.get())
        assert "data-live" in page
        answer = lead.get("/bill", seen=seen(page))
        assert (answer.status_code, answer.content) == (204, b"")
        assert not answer.cookies, "looking is no move: a sign-in ends by itself"

    @pytest.mark.parametrize("change", ["paying", "paid", "no", "name", "link"])
    def test_gets_the_changed_parts(self, lead: Payer, finn: Mate, change: str) -> None:
        before = seen(words(lead.get()))
        match change:
            case "paying" | "paid":
                mates.pay(finn.share)
                if change == "paid":
                    mates.pump(finn.share.checkout_id)
            case "no":
                finn.post("/decline")
            case "name":
                lead.post("/rename-share", share=str(finn.share.pk), new_name="Fionn")
            case "link":
                lead.post("/cancel-share", share=str(finn.share.pk))
                lead.post("/ask-again", share=str(finn.share.pk))
        answer = lead.get("/bill", seen=before)
        page = words(answer)
        assert answer.status_code == 200 and page.lstrip().startswith("<div id=") and seen(page) != before
        assert lead.get("/bill", seen=seen(page)).status_code == 204

    def test_shows_a_new_refusal_in_place(self, lead: Payer, finn: Mate, amy: PaymentRequest) -> None:
        finn.post("/decline")
        part = words(lead.get("/bill", seen="", no=""))
        assert "Finn said no." in part and 'id="said-no"' not in part
        assert "When a mate pays" in part
        mate_shares.decline(amy.pk)
        part = words(lead.get("/bill", seen="", no=str(finn.share.pk)))
        assert '<span class="hint">Amy said no.</span>' in part
        assert "so this amount stays on" not in part, "the block stands in the sentence's place"
        part = words(lead.get("/bill", seen="", no=str(amy.pk)))
        assert '<span class="hint">Finn said no.</span>' in part

    def test_reloads_when_the_order_is_refunded_or_the_lead_is_signed_out(
        self, lead: Payer, order: Checkout
    ) -> None:
        for cookies in ("kept", "cleared"):
            if cookies == "kept":
                refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
            else:
                lead.client.cookies.clear()
            answer = lead.get("/bill", seen="")
            assert answer["HX-Refresh"] == "true" and answer.content == b""

    @pytest.mark.parametrize("named", ["", "x", "01a1ff87-30a0-763f-ad37-2dcca246cbf9"])
    def test_of_no_order_is_a_404(self, lead: Payer, named: str) -> None:
        assert lead.client.get("/pay/bill", {"id": named}).status_code == 404

    def test_of_a_held_order_becomes_the_bill(self, lead: Payer, order: Checkout) -> None:
        polled = lead.client.get(f"/pay?id={order.pk}", headers={"HX-Request": "true"})
        assert polled["HX-Refresh"] == "true"

    def test_costs_three_statements(
        self, lead: Payer, finn: Mate, django_assert_num_queries: Callable[..., Any]
    ) -> None:
        before = seen(words(lead.get()))
        with django_assert_num_queries(3):
            lead.get("/bill", seen=before)
