"""A mate declines a share at the group link, and then reopens it."""

import pytest

from checkout import mate_shares
from checkout.models import Checkout
from hosted_page.models import SmsMessage
from tests import factories
from tests.hosted_page.browsers import Payer, words
from tests.hosted_page.group.test_group_notices import SPLIT, split
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.status.reading import plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]


@pytest.fixture
def lead(unpaid: Checkout) -> Payer:
    """Return the browser of Lea, who asks Finn (£20.00) and one more mate (£30.00) to pledge before she pays."""
    made = Payer(unpaid)
    made.sign_in()
    split(made, **SPLIT)
    return made


@pytest.mark.rule("share.bends", "share.declines")
class TestAMateWhoSaidNo:
    @pytest.fixture
    def no(self, lead: Payer) -> Guest:
        """Return the browser of Finn, who took a share at the group link and then declined it."""
        made = Guest(lead.checkout)
        made.take(2)
        page = plain(words(made.client.post(f"{made.path}/2/decline", follow=True)))
        assert "You said no" in page and "I’ve changed my mind" in page
        return made

    def test_takes_the_share_again_after_a_change_of_mind(self, no: Guest, lead: Payer) -> None:
        assert no.post("/2/reconsider")["Location"] == f"{no.path}/2"
        assert "Kept for you until" in words(no.get("/2"))
        assert Guest(lead.checkout).take(2).status_code == 409
        no.pay(2)
        assert lead.checkout.payment_requests.get(position=2).status == "pledged"

    def test_is_led_to_the_change_of_mind_from_the_group_page(self, no: Guest, lead: Payer) -> None:
        page = words(no.get())
        assert "You said no" in page and f'href="{no.path}/2"' in page and "I’ve changed my mind" in page
        other = words(Guest(lead.checkout).get())
        assert "You said no" not in other and "changed my mind" not in other

    def test_reads_that_the_share_is_no_longer_free(self, no: Guest, lead: Payer) -> None:
        lead.checkout.payment_requests.filter(position=2).update(status="open")  # the lead asks again
        Guest(lead.checkout).take(2)
        page = plain(words(no.client.post(f"{no.path}/2/reconsider", follow=True)))
        assert "Finn’s share was just taken" in page and "changed my mind" not in page

    def test_reads_that_the_lead_keeps_the_share(self, no: Guest, lead: Payer) -> None:
        mate_shares.cancel(lead.checkout.payment_requests.get(position=2).pk)
        page = plain(words(no.client.post(f"{no.path}/2/reconsider", follow=True)))
        assert "Lea is no longer asking for this" in page and "You said no" not in page

    def test_is_the_only_person_who_can_change_their_mind(self, no: Guest, lead: Payer) -> None:
        other = Guest(lead.checkout)
        other.take(3, name="Kim")
        other.post("/2/reconsider")
        assert lead.checkout.payment_requests.get(position=2).status == "declined"

    def test_is_offered_no_change_of_mind_at_the_group_page_after_the_lead_keeps_it(
        self, no: Guest, lead: Payer
    ) -> None:
        mate_shares.cancel(lead.checkout.payment_requests.get(position=2).pk)
        assert "changed my mind" not in words(no.get())

    def test_can_take_another_share(self, no: Guest, lead: Payer) -> None:
        assert f'href="{no.path}">Take another share' in words(no.get("/2"))
        no.take(3, name="Finn")
        no.post("/2/reconsider")
        assert lead.checkout.payment_requests.get(position=2).status == "declined"

    def test_reopens_nothing_while_the_shop_is_stopped(self, no: Guest, lead: Payer) -> None:
        factories.stop(lead.checkout.merchant)
        assert "changed my mind" not in words(no.get())
        no.post("/2/reconsider")
        assert lead.checkout.payment_requests.get(position=2).status == "declined"


@pytest.mark.rule("share.bends", "group.own_link")
def test_the_person_with_the_shares_number_can_change_their_mind(lead: Payer) -> None:
    lead.checkout.payment_requests.filter(position=2).update(phone="+447700900456")
    finn = Guest(lead.checkout)
    SmsMessage.objects.all().delete()  # otherwise the number must wait for its next code
    finn.sign_in(2, "07700 900456")
    page = words(finn.client.post(f"{finn.path}/2/decline", follow=True))
    assert "You said no" in page and "I’ve changed my mind" in page
    assert finn.post("/2/reconsider")["Location"] == f"{finn.path}/2"
    share = lead.checkout.payment_requests.get(position=2)
    assert share.status == "open" and share.claim_digest
