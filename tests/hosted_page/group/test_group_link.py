"""The group link as the lead shares it."""

import pytest

from checkout import mate_shares
from checkout.models import Checkout, GroupLink, PaymentRequest
from tests.hosted_page.browsers import Payer, words

pytestmark = pytest.mark.django_db


@pytest.mark.rule("group.link")
def test_the_page_shows_the_text_of_the_group_message(lead: Payer, order: Checkout) -> None:
    page, token = words(lead.get()), GroupLink.objects.get().token
    assert "Lea · " in page and "take your share" in page and f"/pay/g/{token}" in page
    PaymentRequest.objects.update(amount=2000)
    assert "£20.00 each" in words(lead.get())
    mate_shares.cancel(order.payment_requests.get(position=3).pk)
    assert "£20.00 each" in words(lead.get()), "Amy can be asked again"
    PaymentRequest.objects.filter(position=3).delete()
    page = words(lead.get())
    assert "· £20.00</span>" in page and "each" not in page


def test_only_the_lead_sees_the_group_link(lead: Payer, order: Checkout) -> None:
    assert "/pay/g/" not in words(Payer(order).get())


def test_the_group_link_disappears_when_no_mate_is_asked_any_more(lead: Payer, order: Checkout) -> None:
    for share in order.payment_requests.all():
        mate_shares.decline(share.pk)
    assert "One link for everyone" not in words(lead.get())
