"""What a lead who waits for pledges can do with each share: copy its link, rename it, cover it, and ask again."""

import pytest

from checkout.models import Checkout, PaymentRequest
from payments.models import Operation
from tests.hosted_page.browsers import Mate, Payer, waiting_lead, words
from tests.hosted_page.group.test_collecting import share
from tests.hosted_page.status.reading import plain

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("posted"),
    pytest.mark.rule("pledge.page"),
]


@pytest.fixture
def lead(unpaid: Checkout) -> Payer:
    """Return the browser of Lea, who asks Finn and one more mate to pledge before she pays."""
    return waiting_lead(unpaid, "Finn", "")


def test_can_copy_a_link_rename_cover_and_ask_again_for_a_share(lead: Payer) -> None:
    finns = share(lead.checkout, 2)
    page = words(lead.get())
    assert page.count('class="group-more"') == 2 and f'{Mate(finns).path}"' in page
    assert "text-share" not in page and "mobile number" not in page, "no mate is texted before the payment"
    field = {"share": str(finns.pk)}
    assert lead.post("/rename-share", new_name="Fionn", **field)["Location"].endswith(f"#share-{finns.pk}")
    assert f'id="share-{finns.pk}"' in words(lead.get()) and "Fionn" in plain(words(lead.get()))
    lead.post("/cancel-share", **field)
    page = plain(words(lead.get()))
    assert (
        "You cover it" in page and "Ask Fionn again" in page and share(lead.checkout, 2).status == "cancelled"
    )
    lead.post("/ask-again", **field)
    assert share(lead.checkout, 2).status == "open"


def test_covers_a_pledged_share_and_releases_its_hold(lead: Payer) -> None:
    finn = Mate(share(lead.checkout, 2))
    finn.pay()
    page = plain(words(lead.get()))
    assert "The hold on Finn’s card is released. Finn’s link stops working." in page
    lead.post("/cancel-share", share=str(finn.share.pk))
    assert finn.status() == "cancelled" and Operation.objects.filter(kind="void").count() == 1
    assert "You cover it" in plain(words(lead.get()))


def test_sees_why_a_share_that_is_being_pledged_cannot_be_changed(lead: Payer) -> None:
    PaymentRequest.objects.filter(position=2).update(status="paying")
    page = words(lead.get())
    assert page.count('class="group-more"') == 1, "a share that a card is paying has no More"
    refused = lead.post("/cancel-share", share=str(share(lead.checkout, 2).pk))
    assert refused.status_code == 422 and "Finn is paying this share now" in words(refused)
