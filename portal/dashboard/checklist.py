"""The integration checklist: each line ticks itself when the merchant's real traffic shows it."""

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Min
from oauth2_provider.models import AccessToken

from checkout.models import Change, Checkout, Refund
from checkout.states import PAID, Status
from config.lib.database import partitions
from payments.models import Merchant
from portal.models import ApiClient
from webhooks.models import Attempt, Delivery, EventType, SigningSecret

LATEST = 5000  # attempts that are searched
SENT_AGAIN = 100  # of them that are looked into
ROTATIONS = 5


@dataclass(frozen=True)
class Step:
    """Something that a finished integration has done, and how to do it."""

    title: str
    text: str
    is_done: bool
    address: str
    button: str


def of(merchant: Merchant) -> list[Step]:
    """Return the merchant's steps in the order in which they are done."""
    docs = "/api/docs"
    return [
        Step(
            "Get an access token",
            "Your server exchanges its key at /oauth/token, and keeps the token for its hour.",
            _has_token(merchant),
            "/portal/keys",
            "See your keys",
        ),
        Step(
            "Create a checkout",
            "Send an order, and its customer to the checkout_url that comes back.",
            Checkout.objects.filter(merchant=merchant).exists(),
            docs,
            "Read how",
        ),
        Step(
            "Answer a test event with 2xx",
            "Save your endpoint, send a test event, and verify its signature.",
            bool(_delivered(merchant, EventType.TEST)),
            "/portal/webhooks#test",
            "Send one",
        ),
        Step(
            "Capture in time",
            "On checkout.authorized your server captures within two minutes, and fulfils on the answer 200.",
            Checkout.objects.filter(merchant=merchant, status__in=PAID).exists(),
            docs,
            "Read how",
        ),
        Step(
            "Take an event twice",
            "Open a delivered checkout.authorized and send it again. Your endpoint answers 2xx and captures once.",
            _has_taken_twice(merchant),
            "/portal/deliveries?event_type=checkout.authorized&outcome=delivered",
            "Choose one",
        ),
        Step(
            "See a refund through",
            "Refund a captured checkout here or by API, and read it until it is refunded.",
            Refund.objects.filter(merchant=merchant, status=Refund.Status.SETTLED).exists(),
            "/portal/checkouts?state=captured",
            "Choose one",
        ),
        Step(
            "Rotate the signing secret",
            "For two hours both secrets sign. Put the new one in place, and send a test event meanwhile.",
            _has_rotated(merchant),
            "/portal/webhooks",
            "Rotate it",
        ),
    ]


def _has_token(merchant: Merchant) -> bool:
    if ApiClient.objects.filter(merchant=merchant, last_used_at__isnull=False).exists():
        return True
    return bool(AccessToken.objects.filter(application__merchant=merchant).exists())


_DELIVERED = """
SELECT id FROM (
    SELECT id, is_delivered, number, actor FROM webhooks_attempt
    WHERE merchant_id = %(merchant)s AND event_type = %(type)s ORDER BY started_at DESC, id DESC LIMIT %(latest)s
) latest WHERE is_delivered AND (NOT %(again)s OR (number > 1 AND actor <> '')) LIMIT %(found)s
"""


def _delivered(merchant: Merchant, event_type: EventType, *, again: bool = False) -> list[UUID]:
    """Return some of the type's latest attempts that were answered 2xx; with `again` those that a person asked for."""
    asked: dict[str, Any] = {
        "merchant": merchant.pk,
        "type": event_type,
        "latest": LATEST,
        "again": again,
        "found": SENT_AGAIN,
    }
    with connection.cursor() as cursor:
        cursor.execute(_DELIVERED, asked)
        return [found for (found,) in cursor.fetchall()]


def _has_taken_twice(merchant: Merchant) -> bool:
    """Return whether two attempts of one event were answered 2xx, the second after its order was captured."""
    # Only who asks for it has an event delivered twice.
    asked_for = _delivered(merchant, EventType.AUTHORIZED, again=True)
    if not asked_for:
        return False
    again = list(Attempt.objects.filter(pk__in=asked_for).prefetch_related("delivery__event"))
    deliveries = {attempt.delivery_id for attempt in again}
    all_of_them = Attempt.objects.filter(delivery__in=deliveries, pk__range=partitions.beside(*deliveries))
    numbers = all_of_them.filter(is_delivered=True).values("delivery").annotate(first=Min("number"))
    first = dict(numbers.values_list("delivery", "first"))
    captured = Change.objects.filter(
        checkout__in={attempt.delivery.event.checkout_uuid for attempt in again},
        origin=Status.AUTHORIZED,
        to=Status.CAPTURED,
    )
    captured_at: dict[UUID | None, datetime] = dict(captured.values_list("checkout", "created_at"))
    return any(
        attempt.number > first[attempt.delivery_id]
        and (at := captured_at.get(attempt.delivery.event.checkout_uuid)) is not None
        and at < attempt.started_at
        for attempt in again
    )


def _has_rotated(merchant: Merchant) -> bool:
    """Return whether an attempt was answered 2xx while two secrets signed."""
    secrets = SigningSecret.objects.filter(subscription__merchant=merchant).order_by("-created_at")
    newest_first = list(secrets.select_related("subscription")[: ROTATIONS + 1])
    for newer, older in pairwise(newest_first):
        if newer.subscription_id != older.subscription_id or older.expires_at is None:
            continue
        both = Attempt.objects.filter(
            merchant=merchant,
            started_at__gte=newer.created_at,
            started_at__lt=older.expires_at,
            is_delivered=True,
        )
        sent = both.values_list("delivery", flat=True)[:SENT_AGAIN]
        if Delivery.objects.filter(pk__in=list(sent), subscription=newer.subscription_id).exists():
            return True
    return False
