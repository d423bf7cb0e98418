"""The integration checklist. When the merchant's traffic shows that a step works, the step is completed."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import cast
from uuid import UUID

from django.db.models import Max, Min
from oauth2_provider.models import AccessToken

from checkout.models import Change, Checkout, Refund
from checkout.states import PAID, Status
from config.lib import clock
from config.lib.database import partitions, queries
from payments.models import Merchant
from portal import statements
from portal.models import ApiClient
from portal.trials.made_orders import MADE_PREFIX
from webhooks.models import Attempt, Delivery, EventType, SigningSecret

LATEST = 5000  # how many of the latest attempts are searched
MAX_EXAMINED = 100  # how many matching attempts are examined, at most
ROTATIONS = 5
DOCS = "/api/docs"
MAKE_KEY = "/portal/keys#new-title"
DOC_ANCHORS = {  # for each step, the section in the documentation
    "token": "authentication",
    "checkout": "create_checkout",
    "test": "signatures",
    "capture": "receivers",
    "twice": "receiving-events",
    "refund": "refund_checkout",
    "rotate": "rotation",
}


@dataclass(frozen=True)
class Step:
    """A step of the integration, with instructions. `at` is when it was completed, or None if this is not known."""

    name: str
    title: str
    text: str
    at: datetime | None
    is_done: bool
    address: str
    button: str

    @property
    def is_for_developers(self) -> bool:
        """Whether the step changes webhooks or creates a key. Not every role may do this."""
        return self.address.startswith(("/portal/webhooks", MAKE_KEY))

    @property
    def docs_url(self) -> str:
        """The address of the step's documentation."""
        return f"{DOCS}#{DOC_ANCHORS[self.name]}"


def has_captured(merchant: Merchant) -> bool:
    """Return whether the merchant has captured an order."""
    return Checkout.objects.filter(merchant=merchant, status__in=PAID).exists()


def checklist_of(merchant: Merchant, *, is_paid: bool | None = None) -> list[Step]:
    """Return the merchant's steps, in order.

    `is_paid` says whether the merchant has captured an order. If it is None, the function looks it up.
    """
    created_at, tested_at = _created_at(merchant), _tested_at(merchant)
    token_at = _adjust_time(min, _token_at(merchant), created_at)
    is_paid = has_captured(merchant) if is_paid is None else is_paid
    captured_at = _adjust_time(max, _captured_at(merchant) if is_paid else None, created_at)
    refunded_at = _adjust_time(max, _refunded_at(merchant), captured_at)
    repeated_at, rotated_at = _repeated_at(merchant), _rotated_at(merchant)
    return [
        Step(
            "token",
            "Get an access token",
            "Your server exchanges its key at /oauth/token and keeps the token for an hour.",
            token_at,
            token_at is not None,
            "/portal/keys",
            "See your keys",
        ),
        Step(
            "checkout",
            "Create a checkout",
            "Send an order. Then send its customer to the checkout_url in the response.",
            created_at,
            created_at is not None,
            f"{DOCS}#create_checkout",
            "Read how",
        ),
        Step(
            "test",
            "Answer a test event with 2xx",
            "Save your endpoint, send a test event, and verify its signature.",
            tested_at,
            tested_at is not None,
            "/portal/webhooks#test",
            "Send one",
        ),
        Step(
            "capture",
            "Capture in time",
            "On checkout.authorized, your server captures within two minutes. It fulfils the order once we"
            " have answered 200.",
            captured_at,
            is_paid,
            f"{DOCS}#receivers",
            "Read how",
        ),
        Step(
            "twice",
            "Handle an event twice",
            "Open a delivered checkout.authorized and send it again. Your endpoint answers 2xx and captures once.",
            repeated_at,
            repeated_at is not None,
            "/portal/deliveries?event_type=checkout.authorized&outcome=delivered",
            "Choose one",
        ),
        Step(
            "refund",
            "Follow a refund to the end",
            "Refund a captured checkout here or by API, and read it until it is refunded.",
            refunded_at,
            refunded_at is not None,
            "/portal/checkouts?state=captured",
            "Choose one",
        ),
        Step(
            "rotate",
            "Rotate the signing secret",
            "Both secrets sign for two hours. Deploy the new secret, and send a test event in that time.",
            rotated_at,
            rotated_at is not None,
            "/portal/webhooks",
            "Rotate it",
        ),
    ]


def _adjust_time(
    choose: Callable[[datetime, datetime], datetime], at: datetime | None, other: datetime | None
) -> datetime | None:
    """Return the earlier time (if `choose` is min) or the later time (if it is max) of two steps.

    Old tokens are deleted, and the sandbox moves orders into the past. Without this correction, a step could
    therefore seem to be completed before the previous step.
    """
    return choose(at, other) if at and other else at


def _token_at(merchant: Merchant) -> datetime | None:
    """Return the time at which the oldest stored token was issued. Without tokens, return the last use of a key."""
    oldest = AccessToken.objects.filter(application__merchant=merchant).order_by("created").first()
    if oldest is not None:
        return cast("datetime", oldest.created)
    used = ApiClient.objects.filter(merchant=merchant).aggregate(at=Max("last_used_at"))
    return cast("datetime | None", used["at"])


def _created_at(merchant: Merchant) -> datetime | None:
    """Return the time at which the merchant's oldest order was created, according to the order's id.

    The id keeps the true time when the sandbox moves the order into the past. Orders that the sandbox makes
    do not count.
    """
    rows = Checkout.objects.filter(merchant=merchant).exclude(merchant_order_id__startswith=MADE_PREFIX)
    oldest = rows.order_by("created_at", "pk").values_list("pk", flat=True).first()
    return clock.time_of_id(oldest) if oldest else None


def _captured_at(merchant: Merchant) -> datetime | None:
    """Return the time at which the oldest captured order was captured."""
    rows = Checkout.objects.filter(merchant=merchant, status__in=PAID).order_by("created_at", "pk")
    return rows.values_list("captured_at", flat=True).first()


def _refunded_at(merchant: Merchant) -> datetime | None:
    """Return the time at which the oldest settled refund was settled."""
    rows = Refund.objects.filter(merchant=merchant, status=Refund.Status.SETTLED).order_by("created_at", "pk")
    return rows.values_list("settled_at", flat=True).first()


def _tested_at(merchant: Merchant) -> datetime | None:
    attempt_ids = _delivered_attempts(merchant, EventType.TEST)
    if not attempt_ids:
        return None
    first = Attempt.objects.filter(pk__in=attempt_ids).aggregate(at=Min("ended_at"))
    return cast("datetime | None", first["at"])


def _delivered_attempts(merchant: Merchant, event_type: EventType, *, is_resent: bool = False) -> list[UUID]:
    """Return the ids of recent attempts for this event type that were answered with 2xx, at most MAX_EXAMINED.

    With `is_resent`, return only attempts that a person requested.
    """
    statement = statements.compose_answered_attempts(
        event_type, latest=LATEST, limit=MAX_EXAMINED, is_resent=is_resent
    )
    return [attempt_id for (attempt_id,) in queries.rows(statement, {"merchant": merchant.pk})]


def _repeated_at(merchant: Merchant) -> datetime | None:
    """Return the time of the earliest attempt that shows that the merchant handles a repeated event, or None.

    This attempt sent a checkout.authorized again after its order was captured, and was answered with 2xx. An
    earlier attempt for the same event had also been answered with 2xx.
    """
    # A delivered event is sent again only if a person requests it.
    attempt_ids = _delivered_attempts(merchant, EventType.AUTHORIZED, is_resent=True)
    if not attempt_ids:
        return None
    resends = list(Attempt.objects.filter(pk__in=attempt_ids).prefetch_related("delivery__event"))
    deliveries = {attempt.delivery_id for attempt in resends}
    id_range = partitions.id_range_of(*deliveries)
    delivered = Attempt.objects.filter(delivery__in=deliveries, pk__range=id_range, is_delivered=True)
    numbers = delivered.values("delivery").annotate(first=Min("number"))
    first_numbers = dict(numbers.values_list("delivery", "first"))
    captures = Change.objects.filter(
        checkout__in={attempt.delivery.event.checkout_uuid for attempt in resends},
        origin=Status.AUTHORIZED,
        to=Status.CAPTURED,
    )
    captured_at: dict[UUID | None, datetime] = dict(captures.values_list("checkout", "created_at"))
    times = (
        attempt.started_at
        for attempt in resends
        if attempt.number > first_numbers[attempt.delivery_id]
        and (at := captured_at.get(attempt.delivery.event.checkout_uuid)) is not None
        and at < attempt.started_at
    )
    return min(times, default=None)


def _rotated_at(merchant: Merchant) -> datetime | None:
    """Return the time of an attempt that was answered with 2xx while two secrets signed, or None."""
    secrets = SigningSecret.objects.filter(subscription__merchant=merchant).order_by("-created_at")
    newest_first = list(secrets.select_related("subscription")[: ROTATIONS + 1])
    for newer, older in pairwise(newest_first):
        if newer.subscription_id != older.subscription_id or older.expires_at is None:
            continue
        attempts = Attempt.objects.filter(
            merchant=merchant,
            started_at__gte=newer.created_at,
            started_at__lt=older.expires_at,
            is_delivered=True,
        )
        sent_attempts = list(
            attempts.order_by("started_at", "pk").values_list("delivery", "started_at")[:MAX_EXAMINED]
        )
        deliveries = Delivery.objects.filter(
            pk__in={delivery for delivery, _ in sent_attempts}, subscription=newer.subscription_id
        )
        delivery_ids = set(deliveries.values_list("pk", flat=True))
        if delivery_ids:
            return next(at for delivery, at in sent_attempts if delivery in delivery_ids)
    return None
