"""The fields of orders that the sandbox creates, and how many a merchant can create."""

import pytest

from checkout.models import Checkout
from config.lib.quota import Limit
from payments.models import Merchant
from portal.trials import made_orders
from tests.factories import CAUSE

pytestmark = pytest.mark.django_db


@pytest.mark.rule("trial.by_hand")
def test_a_made_order_can_be_told_from_the_shops_orders(acme: Merchant) -> None:
    made = made_orders.make_order(acme, cause=CAUSE)
    assert made.merchant_order_id.startswith("trial-order-") and made.status == "created"
    assert (made.amount, made.currency) == (2250, "GBP")
    assert made.return_url == made.cancel_url and made.return_url.endswith("/portal")


@pytest.mark.rule("trial.by_hand")
def test_orders_are_limited_by_merchant(
    acme: Merchant, rival: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_orders, "LIMIT", Limit(2, made_orders.LIMIT.within))
    for _ in range(2):
        made_orders.make_order(acme, cause=CAUSE)
    with pytest.raises(made_orders.TooManyOrders):
        made_orders.make_order(acme, cause=CAUSE)
    made_orders.make_order(rival, cause=CAUSE)
    assert Checkout.objects.filter(merchant=acme).count() == 2


def test_an_order_for_a_case_leads_back_to_the_page_that_made_it() -> None:
    order = made_orders.build_order("trial-twice-1", return_path="/portal/checklist")
    assert order.merchant_order_id == "trial-twice-1" and order.return_url.endswith("/portal/checklist")
