"""The lines of the bill: the state of each share, and what the lead can do with the share."""

import re

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout import captures, mate_shares
from checkout.group import share_claims, unit_claims
from checkout.models import Checkout, PaymentRequest
from config.lib.web import qr_codes
from hosted_page import summary
from hosted_page.models import SmsMessage
from hosted_page.payment_target import absolute
from hosted_page.sms import senders
from hosted_page.sms.senders import NotAccepted
from payments.models import Merchant
from tests import factories, mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import FINN, Mate, Payer, words
from tests.hosted_page.group.test_bill import seen, sums, text
from tests.hosted_page.sms.test_outbox import Network, send_all
from tests.outside import refund_outside

pytestmark = pytest.mark.django_db


def too_busy(*_args: str, **_more: str) -> None:
    raise NotAccepted("too_many_requests")


def row(page: str, share: PaymentRequest) -> tuple[str, str]:
    """Return the `data-seen` value and the text of a share's row. The value identifies the state of the row."""
    found = re.search(
        rf'<li[^>]* id="share-{share.pk}" data-part data-seen="([^"]*)"(.*?)</li>', page, re.DOTALL
    )
    assert found
    return found[1], text(found[2].partition(">")[2])


def reserved_until(line: str) -> str:
    """Return the time until which a share is reserved, as the line shows it."""
    return line.partition("Taken kept until ")[2][:40]


class TestALine:
    def test_shows_the_status_and_the_link_of_each_share(
        self, lead: Payer, finn: Mate, amy: PaymentRequest
    ) -> None:
        finn.pay()
        assert mates.settled(finn.share) == "reimbursed"
        page = words(lead.get())
        assert "Back on your card" in page and "Not paid yet" in page
        assert f"/pay/share/{amy.token}" in page and page.count(f"/pay/share/{amy.token}/qr.svg") == 1
        drawn = lead.client.get(f"/pay/share/{amy.token}/qr.svg")
        assert drawn["Content-Type"] == "image/svg+xml" and b'stroke="#000"' in drawn.content
        assert drawn.content == qr_codes.svg(absolute(f"/pay/share/{amy.token}"))
        assert lead.client.get("/pay/share/x/qr.svg").status_code == 404
        assert finn.share.token not in page, "there is nothing to pay at Finn's link"

    @pytest.mark.rule("share.bends")
    def test_does_not_offer_to_ask_again_after_a_dashboard_refund(
        self, lead: Payer, order: Checkout, amy: PaymentRequest, posted: None
    ) -> None:
        mate_shares.decline(amy.pk)
        assert "Ask Amy again" in text(words(lead.get()))
        order.refresh_from_db()
        refund_outside(order.payment, 1000)
        assert "Ask Amy again" not in text(words(lead.get()))

    def test_without_a_name_is_named_by_its_position(self, lead: Payer, finn: Mate) -> None:
        PaymentRequest.objects.filter(pk=finn.share.pk).update(name="")
        page = words(lead.get())
        assert "Share 2" in page and "Mate 1" not in page

    def test_shows_the_status_of_its_text_message(
        self, lead: Payer, amy: PaymentRequest, monkeypatch: pytest.MonkeyPatch, settings: Settings
    ) -> None:
        settings.SANDBOX = False
        network = Network()
        monkeypatch.setattr(senders, "current_sender", lambda: network)
        lead.post("/text-share", share=str(amy.pk), phone=FINN)
        assert "On its way to •••• 0456 by text. You can remind them from" in text(words(lead.get()))
        with monkeypatch.context() as busy:
            busy.setattr(network, "send", too_busy)
            send_all()
        assert "On its way to •••• 0456 by text." in text(words(lead.get())), "the carrier is down"
        SmsMessage.objects.filter(ended_at=None).update(due_at=timezone.now())
        send_all()
        assert "Texted to •••• 0456. You can remind them from" in text(words(lead.get()))

    @pytest.mark.rule("bill.live")
    def test_is_updated_once_its_text_has_been_sent(
        self, lead: Payer, amy: PaymentRequest, monkeypatch: pytest.MonkeyPatch, settings: Settings
    ) -> None:
        settings.SANDBOX = False
        network = Network()
        monkeypatch.setattr(senders, "current_sender", lambda: network)
        lead.post("/text-share", share=str(amy.pk), phone=FINN)
        page = words(lead.get())
        assert "On its way to •••• 0456" in row(page, amy)[1]
        assert lead.get("/bill", seen=seen(page)).status_code == 204
        send_all()
        part = words(lead.get("/bill", seen=seen(page)))
        assert "Texted to •••• 0456" in row(part, amy)[1] and row(part, amy)[0] != row(page, amy)[0]

    @pytest.mark.rule("group.kept", "bill.live")
    def test_of_a_claimed_share_says_until_when_it_is_reserved(self, lead: Payer, finn: Mate) -> None:
        share_claims.claim_share(finn.share.pk, claim="x" * 64)
        page = words(lead.get())
        assert self.kept_until(finn) in reserved_until(row(page, finn.share)[1])
        share_claims.extend_claim(finn.share.pk, claim="x" * 64)
        part = words(lead.get("/bill", seen=seen(page)))
        assert self.kept_until(finn) in reserved_until(row(part, finn.share)[1])
        assert row(part, finn.share)[0] != row(page, finn.share)[0], "the row is put in anew"
        assert self.kept_until(finn) not in row(page, finn.share)[1]

    def kept_until(self, mate: Mate) -> str:
        mate.share.refresh_from_db()
        assert mate.share.claimed_until
        return f"{mate.share.claimed_until.astimezone(summary.zone_of(mate.share.checkout)):%H:%M}"

    @pytest.mark.rule("bill.live", "split.free_units")
    def test_is_updated_if_a_mate_takes_other_units_of_the_same_price(self, acme: Merchant) -> None:
        kinds = [factories.item(item_ref=kind, name=kind, quantity=2) for kind in ("Standing", "Seated")]
        lea = Payer(factories.checkout(acme, items=kinds))
        lea.pay(split="item", your_name="Lea", name="", **{"units-0": "1", "units-1": "1"})
        order = captures.capture(acme, lea.checkout.pk, cause=CAUSE)
        free = order.payment_requests.get()
        taken = unit_claims.take_units(order.pk, [1, 0], claim="z" * 64, name="Zoe")
        page = words(lea.get())
        share_claims.release_claim(taken.pk, claim="z" * 64)
        unit_claims.take_units(order.pk, [0, 1], claim="z" * 64, name="Zoe")
        part = words(lea.get("/bill", seen=seen(page)))
        assert "1 × Seated" in row(page, free)[1] and "1 × Standing" in row(part, free)[1]
        assert row(part, free)[0] != row(page, free)[0], "the row is put in anew"

    def test_of_a_declined_share_says_when_and_what_happens_next(self, lead: Payer, finn: Mate) -> None:
        finn.post("/decline")
        page = words(lead.get())
        assert "Finn said no" in text(page) and ", you cover it" in page
        assert "You cover the £20.00, unless Finn changes their mind." in text(page)
        assert sums(page) == ["£60.00", "£30.00", "£0.00"]
        PaymentRequest.objects.filter(pk=finn.share.pk).update(expires_at=timezone.now())
        late = text(words(lead.get()))
        assert "Finn has not been charged. You cover the £20.00." in late and "changes their mind" not in late

    def test_of_a_nameless_share_has_the_name_of_the_mate_who_took_it(self, lead: Payer, finn: Mate) -> None:
        PaymentRequest.objects.filter(pk=finn.share.pk).update(name="")
        share_claims.claim_share(finn.share.pk, claim="x" * 64, name="Zoe")
        assert "Zoe" in row(words(lead.get()), finn.share)[1]

    @pytest.mark.parametrize(
        ("asks", "question"),
        [("again", "Ask Finn for £20.00 again?"), ("keep", "Cover Finn’s £20.00 yourself?")],
    )
    def test_asks_in_place_without_javascript(
        self, lead: Payer, finn: Mate, asks: str, question: str
    ) -> None:
        finn.post("/decline")
        assert 'data-face="say"' in words(lead.get()) and 'http-equiv="refresh"' in words(lead.get())
        page = words(lead.get(asks=asks))
        assert f'data-face="{asks}"' in page and question in text(page)
        assert 'http-equiv="refresh"' not in page, "a question is not swept away"

    def test_of_each_person_is_shown_while_the_order_is_held(self, unpaid: Checkout) -> None:
        lea = Payer(unpaid)
        lea.pay(split="equal", people="9", your_name="Lea")
        page = words(lea.get())
        assert page.count('class="group-line ') == 9 and "Share 9" in page
