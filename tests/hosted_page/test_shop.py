"""The link to the merchant's shop, for payers who have no other address to return to."""

import pytest

from checkout.models import Checkout
from payments.models import Merchant
from tests import mates
from tests.hosted_page.browsers import Mate, Payer, words
from tests.hosted_page.group.test_group_page import Guest

pytestmark = pytest.mark.django_db


@pytest.mark.rule("page.shop")
class TestTheWayToTheShop:
    URL = "https://acme.example/"

    def test_is_shown_to_a_mate_who_has_declined(self, finn: Mate, order: Checkout) -> None:
        assert 'id="shop"' not in words(finn.get()), "there is something to pay"
        finn.post("/decline")
        assert 'id="shop"' not in words(finn.get()), "the merchant has set none"
        Merchant.objects.update(shop_url=self.URL)
        assert f'id="shop" href="{self.URL}"' in words(finn.get())
        assert "Back to <bdi>Acme Tickets</bdi>" in words(finn.get())

    def test_is_shown_to_a_mate_who_has_paid(self, finn: Mate) -> None:
        Merchant.objects.update(shop_url=self.URL)
        finn.pay()
        assert mates.settled(finn.share) in ("paid", "reimbursed")
        assert f'id="shop" href="{self.URL}"' in words(finn.get())

    def test_is_shown_where_a_group_s_link_has_ended(self, order: Checkout) -> None:
        Merchant.objects.update(shop_url=self.URL)
        assert 'id="shop"' not in words(Guest(order).get())
        order.payment_requests.update(status="cancelled")
        assert f'id="shop" href="{self.URL}"' in words(Guest(order).get())

    def test_does_not_replace_the_return_url_of_an_order(self, lead: Payer, order: Checkout) -> None:
        Merchant.objects.update(shop_url=self.URL)
        page = words(lead.get())
        assert self.URL not in page and order.return_url in page
