"""The integration checklist. A step is completed automatically when the merchant's traffic shows it."""

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

LATEST = 5000  # the number of latest attempts that are searched
MAX_EXAMINED = 100  # the maximum number of matching attempts that are examined
ROTATIONS = 5
DOCS = "/api/docs"
MAKE_KEY = "/portal/keys#new-title"
DOC_ANCHORS = {  # the section of the documentation about each step
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
    """A step of the integration, and how to do it. `at` is when it was done, or None if that is unknown."""

    name: str
    title: str
    text: str
    at: datetime | None
    is_done: bool
    address: str
    button: str

    @property
    def is_for_developers(self) -> bool:
        """Return whether the step changes webhooks or makes a key, which not every role may do."""
        return self.address.startswith(("/portal/webhooks", MAKE_KEY))

    @property
    def read_at(self) -> str:
        """Return the address of the step's documentation."""
        return f"{DOCS}#{DOC_ANCHORS[self.name]}"


def has_captured(merchant: Merchant) -> bool:
    """Return whether the merchant has captured an order."""
    return Checkout.objects.filter(merchant=merchant, status__in=PAID).exists()


def checklist_of(merchant: Merchant, *, is_paid: bool | None = None) -> list[Step]:
    """Return the merchant's steps in their order.

    `is_paid` says whether the merchant has captured an order. It is looked up if the caller passes None.
    """
    made_at, tested_at = _made_at(merchant), _tested_at(merchant)
    token_at = _adjust_time(min, _token_at(merchant), made_at)
    is_paid = has_captured(merchant) if is_paid is None else is_paid
    captured_at = _adjust_time(max, _captured_at(merchant) if is_paid else None, made_at)
    refunded_at = _adjust_time(max, _refunded_at(merchant), captured_at)
    twice_at, rotated_at = _taken_twice_at(merchant), _rotated_at(merchant)
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
            made_at,
            made_at is not None,
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
            twice_at,
            twice_at is not None,
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
    which: Callable[[datetime, datetime], datetime], at: datetime | None, other: datetime | None
) -> datetime | None:
    """Return the earlier (`which` is min) or later (max) of a step's time `at` and another step's time.

    Without this correction, a step could seem to be done before the previous step, because old tokens are
    deleted, and the sandbox moves orders into the past.
    """
    return which(at, other) if at and other else at


def _token_at(merchant: Merchant) -> datetime | None:
    """Return when the oldest stored token was made, or when a key was last used if no token is stored."""
    oldest = AccessToken.objects.filter(application__merchant=merchant).order_by("created").first()
    if oldest is not None:
        return cast("datetime", oldest.created)
    used = ApiClient.objects.filter(merchant=merchant).aggregate(at=Max("last_used_at"))
    return cast("datetime | None", used["at"])


def _made_at(merchant: Merchant) -> datetime | None:
    """Return when the oldest order was made with a key, according to its id.

    The id still has the true time after the sandbox has moved the order into the past. Orders that the
    sandbox makes do not count.
    """
    rows = Checkout.objects.filter(merchant=merchant).exclude(merchant_order_id__startswith=MADE_PREFIX)
    oldest = rows.order_by("created_at", "pk").values_list("pk", flat=True).first()
    return clock.time_of_id(oldest) if oldest else None


def _captured_at(merchant: Merchant) -> datetime | None:
    """Return when the oldest of the captured orders was captured."""
    rows = Checkout.objects.filter(merchant=merchant, status__in=PAID).order_by("created_at", "pk")
    return rows.values_list("captured_at", flat=True).first()


def _refunded_at(merchant: Merchant) -> datetime | None:
    """Return when the oldest of the settled refunds was settled."""
    rows = Refund.objects.filter(merchant=merchant, status=Refund.Status.SETTLED).order_by("created_at", "pk")
    return rows.values_list("settled_at", flat=True).first()


def _tested_at(merchant: Merchant) -> datetime | None:
    answered = _delivered_attempts(merchant, EventType.TEST)
    return Attempt.objects.filter(pk__in=answered).aggregate(at=Min("ended_at"))["at"] if answered else None


def _delivered_attempts(merchant: Merchant, event_type: EventType, *, again: bool = False) -> list[UUID]:
    """Return the ids of at most MAX_EXAMINED recent attempts for events of this type that were answered 2xx.

    With `again`, return only attempts that a person asked for.
    """
    statement = statements.compose_answered_attempts(
        event_type, latest=LATEST, found=MAX_EXAMINED, is_resent=again
    )
    return [found for (found,) in queries.rows(statement, {"merchant": merchant.pk})]


def _taken_twice_at(merchant: Merchant) -> datetime | None:
    """Return the time of the earliest attempt that shows that the merchant handles an event twice, or None.

    The attempt sent a checkout.authorized again after its order was captured, and was answered 2xx. An
    earlier attempt of the same event had also been answered 2xx.
    """
    # A delivered event is sent again only if a person asks for it.
    asked_for = _delivered_attempts(merchant, EventType.AUTHORIZED, again=True)
    if not asked_for:
        return None
    again = list(Attempt.objects.filter(pk__in=asked_for).prefetch_related("delivery__event"))
    deliveries = {attempt.delivery_id for attempt in again}
    ids = partitions.id_range_of(*deliveries)
    delivered = Attempt.objects.filter(delivery__in=deliveries, pk__range=ids, is_delivered=True)
    numbers = delivered.values("delivery").annotate(first=Min("number"))
    first = dict(numbers.values_list("delivery", "first"))
    captured = Change.objects.filter(
        checkout__in={attempt.delivery.event.checkout_uuid for attempt in again},
        origin=Status.AUTHORIZED,
        to=Status.CAPTURED,
    )
    captured_at: dict[UUID | None, datetime] = dict(captured.values_list("checkout", "created_at"))
    second = (
        attempt.started_at
        for attempt in again
        if attempt.number > first[attempt.delivery_id]
        and (at := captured_at.get(attempt.delivery.event.checkout_uuid)) is not None
        and at < attempt.started_at
    )
    return min(second, default=None)


def _rotated_at(merchant: Merchant) -> datetime | None:
    """Return when an attempt was answered 2xx while two secrets signed; None if never."""
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
        sent = list(both.order_by("started_at", "pk").values_list("delivery", "started_at")[:MAX_EXAMINED])
        deliveries = Delivery.objects.filter(
            pk__in={delivery for delivery, _ in sent}, subscription=newer.subscription_id
        )
        its_own = set(deliveries.values_list("pk", flat=True))
        if its_own:
            return next(at for delivery, at in sent if delivery in its_own)
    return None
