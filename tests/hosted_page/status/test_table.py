"""What each viewer of an order sees (rule page.viewer).

The cases are failed refunds, suspended shops, replaced links and late mates.
"""

import pytest

from checkout import captures, refunds
from checkout.models import Checkout, PaymentRequest
from hosted_page.models import SmsMessage
from hosted_page.status.cells import Viewer
from payments import operator_stops
from payments.providers.sandbox import fault_injection
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer, words
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.status.party import Party
from tests.hosted_page.status.reading import plain
from tests.outside import dispute, settle

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]
V = Viewer


class Group(Party):
    """A captured order. Finn's share is reimbursed, and Amy is asked to pay. The other mates are no longer asked."""

    def page(self, viewer: Viewer) -> str:
        """Return the text of this viewer's page, in English."""
        return plain(words(self.view(viewer).read("en-gb")))


@pytest.fixture
def group(unpaid: Checkout) -> Group:
    made = Group(unpaid)
    made.capture()
    made.reimburse()
    made.end_shares()
    made.order.refresh_from_db()
    return made


def fail_refund(group: Group) -> None:
    """Request a refund of the order, as the merchant does. The bank refuses every part of the refund."""
    fault_injection.set_fault(verb="refund", mode="refund_card_closed", times=2)
    refund(group)
    assert group.order.status == "captured"


def refund(group: Group) -> None:
    refunds.accept(group.order.merchant, group.order.pk, ref="r-1", cause=CAUSE)
    settle(group.order)


@pytest.mark.rule("page.viewer")
def test_a_failed_refund_is_reported_to_everyone_who_could_see_it(group: Group) -> None:
    fail_refund(group)
    tried = "Acme Tickets tried to refund this order, but the bank did not accept it."
    for viewer in (V.PAID, V.PAY_LINK, V.HOLDER, V.GROUP_LINK):
        assert tried in group.page(viewer), viewer
    assert "not gone back" in group.page(V.PAID)
    page = group.page(V.GROUP_LINK)
    assert page.index("Which share is yours?") < page.index(tried), "the heading comes first"
    bill = plain(words(group.lead.get()))
    assert "The refund did not go through" in bill and "Acme Tickets tried to refund £90.00" in bill
    assert "Acme Tickets still has the money. Ask Acme Tickets what happens next." in bill
    assert "tried to refund" in plain(words(Payer(group.order).get()))
    shown = words(group.lead.get())
    assert '<div id="one-link" class="one-link-quiet"' in shown, "the next step is to ask the shop"
    assert '<a class="button button-main" id="return"' in shown
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
        assert "You paid £" in group.page(V.PAID)


@pytest.mark.rule("share.replaced")
class TestAReplacedLink:
    def test_leads_its_owner_to_the_new_link_and_says_to_others_that_it_exists(self, group: Group) -> None:
        share = group.share(4)
        PaymentRequest.objects.filter(pk=share.pk).update(phone="+447700900456")
        bob, other = Mate(share), Mate(share)
        group.lead.post("/ask-again", share=str(share.pk))
        share.refresh_from_db()
        for page in (words(bob.get()), words(other.get())):
            assert "This link has been replaced" in page and share.token not in page
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
        assert (
            "Lea has made a new link for this share. Ask Lea for it." in plain(page)
            and share.token not in page
        )

    def test_of_a_share_without_a_number_says_whom_to_ask(self, group: Group) -> None:
        bob = Mate(group.share(4))
        group.lead.post("/ask-again", share=str(bob.share.pk))
        page = words(bob.get())
        assert (
            "Lea has made a new link for this share. Ask Lea for it." in plain(page)
            and "Sign in to open it" not in page
        )


@pytest.mark.rule("group.own_link")
class TestASentShare:
    @pytest.fixture
    def guest(self, group: Group) -> Guest:
        PaymentRequest.objects.filter(pk=group.share(3).pk).update(phone="+447700900456")
        return Guest(group.order)

    def test_is_paid_at_the_group_link_by_the_person_who_proves_the_number(self, guest: Guest) -> None:
        page = words(guest.get())
        assert "That’s me" in page and "900456" not in page
        assert guest.take(3).status_code == 409
        SmsMessage.objects.all().delete()
        guest.pay(3, mates.AMYS)
        share = PaymentRequest.objects.get(position=3)
        assert mates.settled(share) == "reimbursed"
        assert "You paid £" in words(guest.get("/3"))

    def test_is_paid_by_no_other_person(self, guest: Guest) -> None:
        guest.sign_in(3, "07700 900777")
        assert "sent to another number" in plain(words(guest.get("/3")))
        assert guest.get("/3/card")["Location"] == f"{guest.path}/3"
        assert guest.post("/3/decline")["Location"] == f"{guest.path}/3"
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
