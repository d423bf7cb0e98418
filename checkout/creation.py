"""Creating a checkout with its items and its first line of history."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from uuid_utils.compat import uuid7

from checkout.models import Change, Checkout, Item
from checkout.states import Status
from config.lib import clock
from payments import switches
from payments.cause import Cause
from payments.models import Merchant

SUBTRACTING = "discount"


class InvalidAmountArithmetic(Exception):
    """The lines do not add up to the total."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"The items add up to {expected}, but total_amount is {actual}.")
        self.expected, self.actual = expected, actual


@dataclass(frozen=True)
class Order:
    """A creation request whose fields are checked already; amounts in minor units."""

    merchant_order_id: str
    total_amount: int
    currency: str
    return_url: str
    cancel_url: str
    items: list[dict[str, Any]]
    merchant_expires_at: datetime | None = None
    metadata: dict[str, str] | None = None


def create(merchant: Merchant, order: Order, *, cause: Cause) -> Checkout:
    """Write a new checkout with its items and first line of history.

    Raises switches.MerchantSuspended, switches.AllStopped, InvalidAmountArithmetic.
    Rules create.answer, create.arithmetic, create.order_repeats, expiry.hour.
    """
    switches.check(merchant)
    check_total(order.items, order.total_amount)
    checkout = _unsaved(merchant, order, clock.now())
    with transaction.atomic(savepoint=False):  # whatever fails here ends the caller's transaction too
        checkout.save(force_insert=True)
        Item.insert_all(
            [Item(checkout=checkout, position=position, **item) for position, item in enumerate(order.items)]
        )
        Change.objects.create(
            checkout=checkout,
            to=Status.CREATED,
            actor=cause.actor,
            request_id=cause.request_id,
            created_at=checkout.created_at,
        )
    return checkout


def _unsaved(merchant: Merchant, order: Order, now: datetime) -> Checkout:
    return Checkout(
        id=uuid7(),
        merchant=merchant,
        merchant_order_id=order.merchant_order_id,
        amount=order.total_amount,
        currency=order.currency,
        return_url=order.return_url,
        cancel_url=order.cancel_url,
        created_at=now,
        updated_at=now,
        metadata=order.metadata or None,
        expires_at=order.merchant_expires_at,
        payable_until=order.merchant_expires_at or now + _lifetime(merchant),
    )


def _lifetime(merchant: Merchant) -> timedelta:
    """Return how long an unpaid checkout can be paid: the merchant's setting, else the service's."""
    if merchant.unpaid_minutes is None:
        return settings.UNPAID_CHECKOUT_LIFETIME
    return timedelta(minutes=merchant.unpaid_minutes)


def wrong_sign(unit_price: int, category: str) -> str | None:
    """Return in a sentence what is wrong with a price's sign, or None: only discounts subtract (rule create.signs)."""
    if category == SUBTRACTING and unit_price >= 0:
        return "Must be negative on a discount."
    if category != SUBTRACTING and unit_price < 0:
        return "Only a discount may be negative: use category discount."
    return None


def check_total(lines: list[dict[str, Any]], total_amount: int) -> None:
    """Raise InvalidAmountArithmetic unless quantity × unit price of all lines is the total. Rule create.arithmetic."""
    expected = sum(line["quantity"] * line["unit_price"] for line in lines)
    if expected != total_amount:
        raise InvalidAmountArithmetic(expected, total_amount)
