"""Reads Stripe's webhooks. Stripe's library verifies them.

A webhook is used only to find the payment that must be read at Stripe.
"""

from collections.abc import Iterator
from typing import Any

import stripe
from django.conf import settings
from django.http import HttpRequest

from payments.models import Operation
from payments.provider import ForgedNotification, Notification
from payments.providers.stripe import books, intents, metadata, refunds

Kind = Operation.Kind
# The last operation on a PaymentIntent, by the status of the intent.
_LAST_KIND_BY_STATUS = {"succeeded": Kind.CAPTURE, "canceled": Kind.VOID}


def read_message(request: HttpRequest) -> Iterator[Notification]:
    """Yield the notification in an event about one of our payments. Raises ForgedNotification."""
    event = _verified_event(request.body, request.headers.get("Stripe-Signature", ""))
    stripe_object: Any = event.data.object
    account = getattr(event, "account", None) or ""
    if event.livemode != settings.STRIPE_IS_LIVE or event.type not in books.EVENTS:
        return
    payment = books.payment_of(stripe_object, account)
    if payment is None:
        return
    if stripe_object.object == "payment_intent":
        kind = _LAST_KIND_BY_STATUS.get(stripe_object.status, Kind.AUTHORIZE)
        yield Notification(event.id, payment.pk, kind, intents.intent_outcome(kind, stripe_object).verdict)
    elif stripe_object.object == "refund":
        yield Notification(
            event.id,
            payment.pk,
            Kind.REFUND,
            refunds.refund_outcome(stripe_object).verdict,
            metadata.read_id(stripe_object, metadata.OPERATION),
        )
    else:
        yield Notification(event.id, payment.pk)


def _verified_event(body: bytes, signature: str) -> stripe.Event:
    """Return the event.

    Raises ForgedNotification unless the event is signed with the secret of one of our endpoints.
    """
    for secret in settings.STRIPE_WEBHOOK_SECRETS:
        try:
            event: stripe.Event = stripe.Webhook.construct_event(body, signature, secret)
            return event
        except (stripe.SignatureVerificationError, ValueError):
            continue
    raise ForgedNotification
