"""Creates the objects that tests need.

Acme is the merchant, Rival is another merchant, Lea is the lead, and Finn is a mate.
"""

from collections import abc
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Sum
from factory.declarations import Sequence
from factory.django import DjangoModelFactory
from uuid_utils.compat import uuid7

from checkout import creation, outcomes
from checkout.creation import Order
from checkout.models import Checkout, Customer, Item, PaymentRequest, Refund
from checkout.outcomes import RecordedOutcome
from config.lib import clock
from payments import operator_stops, planning
from payments.cause import Cause
from payments.models import Merchant, Operation, Posting, Switch
from payments.provider import Outcome
from webhooks import subscriptions, url_check
from webhooks.models import Event
from webhooks.subscriptions import SavedSubscription

CAUSE = Cause("client:test", "req_test")


class MerchantFactory(DjangoModelFactory[Merchant]):
    class Meta:
        model = Merchant

    name = Sequence(lambda number: f"Merchant {number}")


class CustomerFactory(DjangoModelFactory[Customer]):
    class Meta:
        model = Customer

    # These numbers are outside the range 07700 900xxx, which the tests use for named people.
    phone = Sequence(lambda number: f"+4477009{number + 1000:05d}")


def item(**changes: Any) -> dict[str, Any]:
    """Return an item of an order as the API accepts it: four tickets of £22.50."""
    line = {
        "item_ref": "ticket-1",
        "name": "Standing ticket",
        "quantity": 4,
        "unit_price": 2250,
        "currency": "GBP",
        "category": "ticket",
    }
    return line | changes


def line(**changes: Any) -> Item:
    """Return an item of an order as the service stores it."""
    return Item(**{"custom_data": None} | item(**changes))


def order(**changes: Any) -> dict[str, Any]:
    """Return the body of a request that creates a checkout of £90.00."""
    fields: dict[str, Any] = {
        "merchant_order_id": "A-20417",
        "total_amount": 9000,
        "currency": "GBP",
        "return_url": "https://shop.example/thanks",
        "cancel_url": "https://shop.example/basket",
        "items": [item()],
    }
    return fields | changes


def checkout(merchant: Merchant, **changes: Any) -> Checkout:
    """Create an unpaid checkout."""
    return creation.create(merchant, Order(**order(**changes)), cause=CAUSE)


def mixed_checkout(merchant: Merchant) -> Checkout:
    """Create an unpaid checkout of £133.00: four tickets, two T-shirts and a fee."""
    shirts = item(item_ref="shirt", name="Tour T-shirt", quantity=2, unit_price=1800, category="other")
    fee = item(item_ref="fee", name="Booking fee", quantity=1, unit_price=700, category="fee")
    return checkout(merchant, items=[item(), shirts, fee], total_amount=13_300)


def bare_checkout(merchant: Merchant, pk: UUID, amount: int = 9000, currency: str = "GBP") -> Checkout:
    """Create only the row of an unpaid checkout, for tests that create its payments directly."""
    now = clock.now()
    return Checkout.objects.create(
        pk=pk,
        merchant=merchant,
        merchant_order_id=str(pk),
        amount=amount,
        currency=currency,
        return_url="https://shop.example/paid",
        cancel_url="https://shop.example/cart",
        created_at=now,
        updated_at=now,
        payable_until=now + timedelta(hours=1),
    )


def bare_refund(merchant: Merchant, checkout_uuid: UUID) -> UUID:
    """Create the row of a failed refund, which does not block other refunds. Return its id."""
    facts = {
        "merchant_refund_ref": str(uuid7()),
        "amount": 9000,
        "status": "failed",
        "created_at": clock.now(),
    }
    return Refund.objects.create(merchant=merchant, checkout_id=checkout_uuid, **facts).pk


def bare_share(checkout_uuid: UUID, position: int = 2, amount: int = 3000) -> UUID:
    """Create the row of a draft share. Return its id."""
    facts = {"position": position, "amount": amount, "token": "token", "token_digest": str(uuid7())}
    return PaymentRequest.objects.create(checkout_id=checkout_uuid, **facts).pk


def stop(merchant: Merchant | None, *, is_stopped: bool = True) -> None:
    """Set or clear an operator's stop of payments, and clear this process's cache of the stops."""
    Switch.objects.update_or_create(merchant=merchant, defaults={"is_stopped": is_stopped, "reason": "Test"})
    operator_stops.reread_stops()


def record(operation: Operation, outcome: Outcome) -> RecordedOutcome:
    """Record the outcome of an operation, as the process that holds its lease does."""
    checkout_uuid, lease = operation.payment.checkout_uuid, operation.lease_token
    return outcomes.record_outcome(checkout_uuid, operation.pk, outcome, lease=lease)


def make_late(checkout: Checkout) -> None:
    """Set a checkout's deadline to one second ago. For a held checkout, the deadline is the end of the hold."""
    ago = clock.now() - timedelta(seconds=1)
    rows = Checkout.objects.filter(pk=checkout.pk)
    if checkout.status == "authorized":
        rows.update(capture_before=ago, authorized_at=ago - settings.HOLD)
        Event.objects.filter(checkout_uuid=checkout.pk).update(created_at=ago - settings.HOLD)
    else:
        rows.update(payable_until=ago)


def subscribe(merchant: Merchant, *, url: str, event_types: abc.Sequence[str] = ("*",)) -> SavedSubscription:
    """Check a URL and subscribe it to the merchant's events, as the API and the portal do."""
    checked = url_check.check_merchant_url(merchant, url)
    return subscriptions.save_subscription(merchant, url=checked, event_types=event_types, is_approved=True)


def balances(checkout_uuid: UUID) -> dict[str, int]:
    """Return the balance of each account of a checkout, in minor units."""
    rows = Posting.objects.filter(checkout_uuid=checkout_uuid).values_list("account")
    return dict(rows.annotate(balance=Sum("amount")))


def replace_key(operation: Operation) -> Operation:
    """Replace an operation under a new key, and return the operation that has replaced it."""
    planning.replace_under_new_key(operation, now=clock.now())
    operation.refresh_from_db()
    return Operation.objects.select_related("payment").get(payment=operation.payment_id, ended_at=None)
