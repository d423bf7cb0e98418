"""Orders that the sandbox makes for a merchant: one for each run of a case, and others that a person pays by hand.

Their ids begin with MADE_PREFIX, so that the merchant's server can distinguish them from its shop's orders.
"""

from datetime import timedelta
from uuid import uuid4

from django.conf import settings

from checkout import creation
from checkout.creation import Order
from checkout.models import Checkout
from config.lib import clock, quota
from payments.cause import Cause
from payments.models import Merchant

MADE_PREFIX = "trial-"
BY_HAND_PREFIX = f"{MADE_PREFIX}order-"
LIMIT = quota.Limit(30, timedelta(hours=1))  # the limit on orders to pay by hand, per merchant
PRICE = 2250  # pence


class TooManyOrders(Exception):
    """Raised if the merchant has made the maximum number of test orders within an hour."""


def make_order(merchant: Merchant, *, cause: Cause) -> Checkout:
    """Make an order that a person pays on the payment page. Must be called in a transaction.

    Raises TooManyOrders, operator_stops.MerchantSuspended, operator_stops.AllStopped. Rule trial.by_hand.
    """
    quota.lock(f"made_orders:{merchant.pk}")
    orders = Checkout.objects.filter(merchant=merchant, merchant_order_id__startswith=BY_HAND_PREFIX)
    if quota.locked_until(orders, LIMIT, clock.now()):
        raise TooManyOrders
    order = build_order(f"{BY_HAND_PREFIX}{uuid4().hex[-8:]}", return_path="/portal")
    return creation.create(merchant, order, cause=cause)


def build_order(order_id: str, *, return_path: str) -> Order:
    """Return the fields of an order for one ticket. After the payment, the payer returns to a page of the portal."""
    item = {
        "item_ref": "trial-ticket",
        "name": "Standing ticket",
        "quantity": 1,
        "unit_price": PRICE,
        "currency": "GBP",
        "category": "ticket",
        "custom_data": None,
    }
    page = f"{settings.PORTAL_URL}{return_path}"
    return Order(
        merchant_order_id=order_id,
        total_amount=PRICE,
        currency="GBP",
        return_url=page,
        cancel_url=page,
        items=[item],
    )
