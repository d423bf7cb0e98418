"""Finds our payments that have changed at Stripe, using Stripe's events.

Only the id of the payment is used from an event, not its other content. Rule provider.accounts.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import stripe
from stripe.params import EventListParams

from config.lib import batches, clock
from payments.models import Payment
from payments.providers.stripe import books

# All event types about the money of a payment. One request can list at most 20 types.
EVENTS = (
    *("payment_intent.amount_capturable_updated", "payment_intent.canceled", "payment_intent.payment_failed"),
    *("payment_intent.processing", "payment_intent.requires_action", "payment_intent.succeeded"),
    *("charge.captured", "charge.expired", "charge.refunded", "charge.refund.updated", "charge.updated"),
    *("refund.created", "refund.failed", "refund.updated"),
    *("charge.dispute.created", "charge.dispute.closed", "charge.dispute.updated"),
    *("charge.dispute.funds_reinstated", "charge.dispute.funds_withdrawn"),
)
EVENTS_KEPT_FOR = timedelta(days=29)  # Stripe lists events of the last 30 days
CHUNK = 500


def changed_payments(since: datetime) -> Iterator[UUID]:
    """Yield our ids of the payments that have had an event since `since`. Raises ProviderUnreachable.

    If `since` is earlier than the oldest event that Stripe lists, yield every payment.
    """
    if since < clock.now() - EVENTS_KEPT_FOR:
        yield from (row.pk for row in batches.iterate(Payment.objects.exclude(provider_reference="")))
        return
    for account in books.list_accounts():
        intents = {_intent_of(event.data.object) for event in _list_events(account, since)} - {""}
        for chunk in batches.chunks(intents, CHUNK):
            payments = Payment.objects.filter(provider_account=account, provider_reference__in=chunk)
            yield from payments.values_list("pk", flat=True)


def _list_events(account: str, since: datetime) -> Iterator[stripe.Event]:
    parameters: EventListParams = {
        "created": {"gte": int(since.timestamp())},
        "types": list(EVENTS),
        "limit": 100,
    }
    return books.list_objects(account, lambda stripe_client: stripe_client.v1.events.list(parameters))


def _intent_of(stripe_object: Any) -> str:
    """Return the id of the PaymentIntent in the object of an event, or "" if it has none."""
    return (
        stripe_object.id
        if stripe_object.object == "payment_intent"
        else getattr(stripe_object, "payment_intent", None) or ""
    )
