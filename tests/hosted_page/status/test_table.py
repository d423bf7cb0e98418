"""Each viewer of an order sees the words of the table in each situation (rule page.viewer)."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.utils.html import strip_tags

from checkout import captures, mate_shares, refunds
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from hosted_page.models import SmsMessage
from hosted_page.status.cells import Situation, Viewer
from hosted_page.status.table import TABLE
from payments import operator_stops
from payments.providers.sandbox import fault_injection
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer, words
from tests.hosted_page.group.test_group_page import Guest
from tests.outside import dispute, refund_outside, settle

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]
S, V = Situation, Viewer


def plain(text: object) -> str:
    """Return the words of a page or of a cell: without tags, and with single spaces."""
    return re.sub(r"\s+", " ", html.unescape(strip_tags(str(text)))).strip()


def shows(page: str, sentence: object) -> bool:
    """Return whether a page shows a sentence of the table. A name in braces matches any value."""
    parts = re.split(r"\{\w+\}", plain(sentence))
    return re.search(".+?".join(re.escape(part) for part in parts), page) is not None


@dataclass
class Group:
    """A split order with a mate for each way to look at it, and their browsers."""

    order: Checkout
    lead: Payer
    finn: Mate

    def share(self, position: int) -> PaymentRequest:
        return self.order.payment_requests.get(position=position)

    def page(self, viewer: Viewer) -> str:
        browsers: dict[Viewer, Callable[[], str]] = {
            V.PAID: lambda: words(self.finn.get()),
            V.PAY_LINK: lambda: words(Mate(self.finn.share).get()),
            V.HOLDER: lambda: words(Mate(self.share(3)).get()),
            V.REFUSED: lambda: words(Mate(self.share(4)).get()),
            V.FORMER: lambda: words(Mate(self.share(5)).get()),
            V.LATE: lambda: words(Mate(self.share(6)).get()),
            V.GROUP_LINK: lambda: words(Guest(self.order).get()),
        }
        return plain(browsers[viewer]())


MATES = (V.PAID, V.PAY_LINK, V.HOLDER, V.REFUSED, V.FORMER, V.LATE, V.GROUP_LINK)


@pytest.fixture
def group(unpaid: Checkout) -> Group:
    """Return an order that Lea has paid. Finn paid his share, Amy is asked, and three others are not any more."""
    lead = Payer(unpaid)
    names = ["Finn", "Amy", "Bob", "Cat", "Dan"]
    lead.pay(split="own", name=names, amount=["20", "10", "10", "10", "10"], your_name="Lea")
    order = captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    made = Group(order, lead, Mate(order.payment_requests.get(position=2)))
    made.finn.pay()
    assert mates.settled(made.finn.share) == "reimbursed"
    mate_shares.decline(made.share(4).pk)
    mate_shares.cancel(made.share(5).pk)
    PaymentRequest.objects.filter(pk=made.share(6).pk).update(expires_at=clock.now())
    mate_shares.expire(made.share(6).pk)
    order.refresh_from_db()
    return made


def fail_refund(group: Group) -> None:
    """Refund the order with the merchant's call. The bank refuses every part of the refund."""
    fault_injection.set_fault(verb="refund", mode="refund_card_closed", times=2)
    refund(group)
    assert group.order.status == "captured"


def refund(group: Group) -> None:
    refunds.accept(group.order.merchant, group.order.pk, ref="r-1", cause=CAUSE)
    settle(group.order)


def review(group: Group) -> None:
    dispute(group.order.payment, 1000)


HAPPENINGS: dict[Situation, Callable[[Group], object]] = {
    S.REIMBURSED: lambda group: None,
    S.DISPUTED: review,
    S.REFUNDED_OUTSIDE: lambda group: refund_outside(group.order.payment, 500),
    S.REFUNDING: lambda group: refunds.accept(group.order.merchant, group.order.pk, ref="r-1", cause=CAUSE),
    S.REFUND_FAILED: fail_refund,
    S.REFUNDED: refund,
}


@pytest.mark.rule("page.viewer")
@pytest.mark.parametrize("situation", HAPPENINGS)
def test_each_mate_reads_the_words_of_the_table(group: Group, situation: Situation) -> None:
    HAPPENINGS[situation](group)
    group.order.refresh_from_db()
    row = TABLE[S.PAID] | TABLE[S.REIMBURSED] | TABLE[situation]
    for viewer in MATES:
        if row[viewer].state != "step":
            page = group.page(viewer)
            for paragraph in row[viewer].money:
                for sentence in paragraph if isinstance(paragraph, tuple) else (paragraph,):
                    assert shows(page, sentence), (situation, viewer, str(sentence), page)


@pytest.mark.rule("page.viewer")
def test_a_failed_refund_is_reported_to_everyone_who_could_see_it(group: Group) -> None:
    fail_refund(group)
    tried = "Acme Tickets tried to refund this order, but the bank did not carry it out."
    for viewer in (V.PAID, V.PAY_LINK, V.HOLDER, V.GROUP_LINK):
        assert tried in group.page(viewer), viewer
    assert "not gone back" in group.page(V.PAID)
    bill = plain(words(group.lead.get()))
    assert "The refund did not go through" in bill and "Acme Tickets tried to refund £90.00" in bill
    assert "tried to refund" in plain(words(Payer(group.order).get()))
    assert sum(mates.borne(group.order).values()) == group.order.amount


@pytest.mark.rule("page.viewer")
def test_a_failed_refund_keeps_the_payer_on_the_page(lea: Payer) -> None:
    lea.pay(mates.ACCOUNT_CLOSED)
    order = captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
    refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
    assert "£90.00 goes back to your card" in words(lea.get())
    settle(order)
    page = words(lea.get())
    assert "The refund did not go through" in page and "Acme Tickets still has the money" in plain(page)
    assert "data-auto-return" not in page and "Confirmed and paid" not in page
    refunds.accept(order.merchant, order.pk, ref="r-2", cause=CAUSE)
    assert "did not go through" not in words(lea.get())


@pytest.mark.rule("page.viewer")
def test_a_stranger_never_reads_that_their_money_goes_back(group: Group) -> None:
    refunds.accept(group.order.merchant, group.order.pk, ref="r-1", cause=CAUSE)
    for status in ("refunding", "refunded"):
        for viewer in (V.PAY_LINK, V.GROUP_LINK):
            assert "our money" not in group.page(viewer) and "your card" not in group.page(viewer)
        stranger = plain(words(Payer(group.order).get()))
        assert "our money" not in stranger and "your card" not in stranger
        settle(group.order)
        assert group.order.status == "refunded", status


@pytest.mark.rule("page.viewer")
def test_the_lead_and_a_mate_who_paid_are_led_from_the_group_link_to_their_pages(group: Group) -> None:
    path = Guest(group.order).path
    assert group.lead.client.get(path)["Location"] == f"/pay?id={group.order.pk}"
    assert group.finn.client.get(path)["Location"] == f"{path}/2"
    refund(group)
    page = plain(words(group.finn.client.get(f"{path}/2")))
    assert "goes back to your card" in page and "not been charged" not in page


@pytest.mark.rule("page.viewer")
def test_a_part_of_a_page_never_contains_another_page(group: Group) -> None:
    guest, other = Guest(group.order), Guest(group.order)
    guest.take(3)
    for path in (f"{other.path}/3", f"{other.path}/3/card"):
        answer = other.client.get(path, headers={"HX-Request": "true"})
        assert answer["HX-Redirect"] == f"{other.path}?taken=3" and not answer.content


@pytest.mark.rule("operator.stop")
class TestASuspendedShop:
    def test_is_announced_before_the_card_is_typed(self, lea: Payer) -> None:
        lea.sign_in()
        lea.client.post(f"/pay/split?id={lea.checkout.pk}", {"split": "all"})
        operator_stops.suspend(lea.checkout.merchant, reason="test")
        assert lea.get("/card")["Location"] == f"/pay?id={lea.checkout.pk}"
        page = plain(words(lea.get()))
        assert "Acme Tickets can’t take payments right now" in page and "You have not been charged." in page
        assert "Your order is kept until" in page and "Back to Acme Tickets" in page
        operator_stops.resume(lea.checkout.merchant, reason="test")
        assert lea.get("/card").status_code == 302

    def test_is_announced_to_mates(self, group: Group) -> None:
        operator_stops.suspend(group.order.merchant, reason="test")
        for viewer in (V.HOLDER, V.GROUP_LINK):
            page = group.page(viewer)
            assert "Acme Tickets can’t take payments right now" in page and "for now" in page
        assert "Your share is paid" in group.page(V.PAID)


@pytest.mark.rule("share.replaced")
class TestAReplacedLink:
    def test_leads_its_owner_to_the_new_link_and_says_to_others_that_it_exists(self, group: Group) -> None:
        share = group.share(4)
        PaymentRequest.objects.filter(pk=share.pk).update(phone="+447700900456")
        bob, other = Mate(share), Mate(share)
        group.lead.post("/ask-again", share=str(share.pk))
        share.refresh_from_db()
        for page in (words(bob.get()), words(other.get())):
            assert "There is a newer link" in page and share.token not in page
        assert bob.post("/decline")["Location"] == bob.path
        assert group.share(4).status == "open"
        SmsMessage.objects.all().delete()
        asked = bob.client.get(f"{bob.path}?sign_in=1")
        assert share.token not in words(asked)
        bob.sign_in()
        assert bob.get()["Location"] == f"/pay/share/{share.token}"
        SmsMessage.objects.all().delete()
        other.sign_in("07700 900777")
        page = words(other.get())
        assert "Ask Lea for the newer link." in plain(page) and share.token not in page

    def test_of_a_share_without_a_number_says_whom_to_ask(self, group: Group) -> None:
        bob = Mate(group.share(4))
        group.lead.post("/ask-again", share=str(bob.share.pk))
        page = words(bob.get())
        assert "Ask Lea for the newer link." in plain(page) and "Sign in to open it" not in page


@pytest.mark.rule("group.own_link")
class TestASentShare:
    @pytest.fixture
    def sent(self, group: Group) -> Guest:
        PaymentRequest.objects.filter(pk=group.share(3).pk).update(phone="+447700900456")
        return Guest(group.order)

    def test_is_paid_at_the_group_link_by_the_person_who_proves_the_number(self, sent: Guest) -> None:
        page = words(sent.get())
        assert "That’s me" in page and "900456" not in page
        assert sent.take(3).status_code == 409
        SmsMessage.objects.all().delete()
        sent.pay(3, mates.AMYS)
        share = PaymentRequest.objects.get(position=3)
        assert mates.settled(share) == "reimbursed"
        assert "Your share is paid" in words(sent.get("/3"))

    def test_is_paid_by_no_other_person(self, sent: Guest) -> None:
        sent.sign_in(3, "07700 900777")
        assert "sent to another number" in plain(words(sent.get("/3")))
        assert sent.get("/3/card")["Location"] == f"{sent.path}/3"
        assert sent.post("/3/decline")["Location"] == f"{sent.path}/3"
        assert PaymentRequest.objects.get(position=3).status == "open"


@pytest.mark.rule("share.late_mate")
class TestALateMate:
    def test_is_asked_for_a_part_of_the_leads_own(self, group: Group) -> None:
        assert "Add a mate" in words(group.lead.get())
        assert "your own £30.00" in plain(words(group.lead.get(asks="add")))
        answer = group.lead.post("/add-mate", new_name="Eve", new_amount="12,50")
        share = group.share(7)
        assert answer["Location"].endswith(f"#share-{share.pk}")
        assert (share.amount, share.name, share.status) == (1250, "Eve", "open")
        assert share.expires_at == group.share(3).expires_at
        eve = Mate(share)
        assert "is asking you for £12.50" in plain(words(eve.get()))
        eve.sign_in("07700 900888")
        eve.give_card(mates.AMYS)
        assert mates.settled(share) == "reimbursed"
        assert "your own £17.50" in plain(words(group.lead.get(asks="add")))
        assert sum(mates.borne(group.order).values()) == group.order.amount

    @pytest.mark.parametrize("typed", ["", "x", "0", "-5", "30.01", "1e3"])
    def test_is_not_asked_for_any_other_amount(self, group: Group, typed: str) -> None:
        answer = group.lead.post("/add-mate", new_name="Eve", new_amount=typed)
        assert answer.status_code == 422 and 'value="Eve"' in words(answer)
        assert group.order.payment_requests.count() == 5

    def test_is_added_by_the_lead_alone_and_while_links_work(self, group: Group) -> None:
        assert Payer(group.order).post("/add-mate", new_amount="5").status_code == 403
        dispute(group.order.payment, 1000)
        group.lead.post("/add-mate", new_amount="5")
        assert group.order.payment_requests.count() == 5
