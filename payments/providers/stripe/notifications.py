"""Stripe's webhooks: verified by its library, and believed as little as any other message."""

from collections.abc import Iterator
from typing import Any

import stripe
from django.conf import settings
from django.http import HttpRequest

from payments.provider import ForgedNotification, Notification
from payments.providers.stripe import books


def read(request: HttpRequest) -> Iterator[Notification]:
    """Yield what an event says of our payments: nothing if it is about something else. Raises ForgedNotification."""
    event = _verified(request.body, request.headers.get("Stripe-Signature", ""))
    thing: Any = event.data.object
    account = getattr(event, "account", None) or ""
    if event.livemode != settings.STRIPE_IS_LIVE or event.type not in books.EVENTS:
        return
    if thing.object == "dispute":
        payment = books.payment_of(thing, account)
        if payment is not None:
            yield Notification(event.id, disputed=payment.pk)
        return
    # nobody waits here: the night asks about the rest
    for record in books.of_thing(thing, account, may_ask=False):
        yield Notification(event.id, record)


def _verified(body: bytes, signature: str) -> stripe.Event:
    """Return the event, signed by one of our endpoints' secrets. Raises ForgedNotification."""
    for secret in settings.STRIPE_WEBHOOK_SECRETS:
        try:
            event: stripe.Event = stripe.Webhook.construct_event(body, signature, secret)
            return event
        except (stripe.SignatureVerificationError, ValueError):
            continue
    raise ForgedNotification
