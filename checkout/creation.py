"""Creates a checkout with its items and the first entry of its history."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.conf import settings
from django.db import transaction
from uuid_utils.compat import uuid7

from checkout.customers import prefills
from checkout.models import Checkout, Item, statements
from config.lib.database import queries
from payments import operator_stops
from payments.cause import Cause
from payments.models import Merchant

DISCOUNT = "discount"


class InvalidAmountArithmetic(Exception):
    """The items do not add up to the total."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"The items add up to {expected}, but total_amount is {actual}.")
        self.expected, self.actual = expected, actual


@dataclass(frozen=True)
class Order:
    """The validated fields of a request to create a checkout. Amounts are in minor units."""

    merchant_order_id: str
    total_amount: int
    currency: str
    return_url: str
    cancel_url: str
    items: list[dict[str, Any]]
    merchant_expires_at: datetime | None = None
    metadata: dict[str, str] | None = None
    customer: dict[str, str] | None = None


def create(merchant: Merchant, order: Order, *, cause: Cause) -> Checkout:
    """Write a new checkout with its items and the first entry of its history.

    Raises operator_stops.MerchantSuspended, operator_stops.AllStopped, InvalidAmountArithmetic. Rules
    create.answer, create.arithmetic, create.order_repeats, expiry.hour.
    """
    operator_stops.check(merchant)
    check_total(order.items, order.total_amount)
    checkout = _build_checkout(merchant, order)
    # There is no savepoint, so an error in this block also rolls back the caller's transaction.
    with transaction.atomic(savepoint=False):
        made = queries.row(statements.INSERT_CHECKOUT, _parameters(checkout, order, cause))
        checkout.created_at, checkout.payable_until = made
        checkout.updated_at, checkout._state.adding = checkout.created_at, False
        prefills.save_prefill(checkout, order.customer or {})
    return checkout


def _parameters(checkout: Checkout, order: Order, cause: Cause) -> dict[str, Any]:
    lines = [_line(**item) for item in order.items]
    return {column: getattr(checkout, column) for column in _REQUEST_COLUMNS} | {
        "metadata": orjson.dumps(order.metadata).decode() if order.metadata else None,
        "lifetime": _lifetime(checkout.merchant),
        "lines": orjson.dumps(lines).decode(),
        "change_id": uuid7(),
        "actor": cause.actor,
        "request_id": cause.request_id,
    }


def _line(*, category: str = "other", custom_data: dict[str, Any] | None = None, **fields: Any) -> list[Any]:
    return [*Item(**fields, category=category, custom_data=custom_data)]


_REQUEST_COLUMNS = (
    *("id", "merchant_id", "merchant_order_id", "amount", "currency", "return_url", "cancel_url"),
    "expires_at",
)


def _build_checkout(merchant: Merchant, order: Order) -> Checkout:
    return Checkout(
        id=uuid7(),
        merchant=merchant,
        merchant_order_id=order.merchant_order_id,
        amount=order.total_amount,
        currency=order.currency,
        return_url=order.return_url,
        cancel_url=order.cancel_url,
        metadata=order.metadata or None,
        expires_at=order.merchant_expires_at,
    )


def _lifetime(merchant: Merchant) -> timedelta:
    """Return how long an unpaid checkout can be paid: the merchant's setting, or else the default."""
    if merchant.unpaid_minutes is None:
        return settings.UNPAID_CHECKOUT_LIFETIME
    return timedelta(minutes=merchant.unpaid_minutes)


def sign_error(unit_price: int, category: str) -> str | None:
    """Return an error message if the price of an item has the wrong sign for its category, else None.

    Only a discount has a negative price (rule create.signs).
    """
    if category == DISCOUNT and unit_price >= 0:
        return "Must be negative on a discount line."
    if category != DISCOUNT and unit_price < 0:
        return "Must not be negative. Send category discount for a discount line."
    return None


def check_total(lines: list[dict[str, Any]], total_amount: int) -> None:
    """Raise InvalidAmountArithmetic unless the sum of quantity × unit price over all items is the total.

    Rule create.arithmetic.
    """
    expected = sum(line["quantity"] * line["unit_price"] for line in lines)
    if expected != total_amount:
        raise InvalidAmountArithmetic(expected, total_amount)
