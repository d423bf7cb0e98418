"""Making a checkout."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from uuid_utils.compat import uuid7

from checkout import pricing
from checkout.models import Change, Checkout, Item
from checkout.pricing import Problem
from checkout.states import Status
from config.lib import clock
from payments import money, switches
from payments.cause import Cause
from payments.models import Merchant

SOONEST_EXPIRY, LATEST_EXPIRY = timedelta(minutes=1), timedelta(hours=24)


class InvalidOrder(Exception):
    """Fields that do not make sense together, each with its sentence."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{problem.param}: {problem.message}" for problem in problems))
        self.problems = list(problems)


@dataclass(frozen=True)
class Order:
    """A creation request (SPEC.md 2.2), its types and sizes already checked."""

    merchant_order_id: str
    total_amount: int
    currency: str
    return_url: str
    cancel_url: str
    items: list[dict[str, Any]]
    merchant_expires_at: datetime | None = None


def create(merchant: Merchant, order: Order, *, cause: Cause) -> Checkout:
    """Write a new checkout with its items and first line of history.

    Raises switches.MerchantSuspended, switches.AllStopped, InvalidOrder, pricing.InvalidAmountArithmetic.
    SPEC.md 2.2, 2.3.
    """
    switches.check(merchant)
    now = clock.now()
    _check(merchant, order, now)
    checkout = Checkout(
        id=uuid7(),
        merchant=merchant,
        merchant_order_id=order.merchant_order_id,
        amount=order.total_amount,
        currency=order.currency,
        return_url=order.return_url,
        cancel_url=order.cancel_url,
        created_at=now,
        expires_at=order.merchant_expires_at,
        payable_until=order.merchant_expires_at or now + _lifetime(merchant),
    )
    with transaction.atomic():
        checkout.save(force_insert=True)
        Item.objects.bulk_create(
            Item(checkout=checkout, position=position, **item) for position, item in enumerate(order.items)
        )
        Change.objects.create(
            checkout=checkout,
            to=Status.CREATED,
            actor=cause.actor,
            request_id=cause.request_id,
            created_at=now,
        )
    return checkout


def _lifetime(merchant: Merchant) -> timedelta:
    """How long an unpaid checkout can be paid: as the merchant has set it, else as the service has it."""
    if merchant.unpaid_minutes is None:
        return settings.UNPAID_CHECKOUT_LIFETIME
    return timedelta(minutes=merchant.unpaid_minutes)


def _check(merchant: Merchant, order: Order, now: datetime) -> None:
    problems: list[Problem] = []
    if order.currency not in money.currencies():
        problems.append(Problem("currency", "Must be an ISO 4217 code in use, in upper case, such as GBP."))
    expiry = order.merchant_expires_at
    if expiry is not None and not now + SOONEST_EXPIRY <= expiry <= now + LATEST_EXPIRY:
        problems.append(Problem("merchant_expires_at", "Must be between 1 minute and 24 hours ahead."))
    problems += _wrong_hosts(merchant, order)
    lines: Any = order.items
    problems += pricing.problems(lines, order.currency)
    if problems:
        raise InvalidOrder(problems)
    pricing.check_total(lines, order.total_amount)


def _wrong_hosts(merchant: Merchant, order: Order) -> list[Problem]:
    """Where the merchant has said which hosts customers may be sent back to, any other is refused."""
    if not merchant.return_hosts:
        return []
    sentence = "Its host is not on the merchant's list. Add it in the portal's settings."
    return [
        Problem(name, sentence)
        for name in ("return_url", "cancel_url")
        if not {urlsplit(getattr(order, name)).hostname, urlsplit(getattr(order, name)).netloc}
        & set(merchant.return_hosts)
    ]
