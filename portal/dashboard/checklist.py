"""The integration checklist: each line ticks itself when the merchant's real traffic shows it."""

from dataclasses import dataclass
from itertools import pairwise

from django.db.models import Exists, OuterRef, QuerySet
from oauth2_provider.models import AccessToken

from checkout.models import Change, Checkout, Refund
from checkout.states import PAID, Status
from payments.models import Merchant
from portal.models import ApiClient
from webhooks.models import Attempt, EventType, SigningSecret

LATEST = 5000  # attempts that are searched
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
            _delivered(merchant, EventType.TEST).exists(),
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


def _delivered(merchant: Merchant, event_type: EventType) -> QuerySet[Attempt]:
    """Return those of the type's latest attempts that were answered 2xx."""
    latest = Attempt.objects.filter(merchant=merchant, event_type=event_type).order_by("-started_at", "-pk")
    return Attempt.objects.filter(pk__in=latest.values("pk")[:LATEST], is_delivered=True)


def _has_taken_twice(merchant: Merchant) -> bool:
    """Return whether two attempts of one event were answered 2xx, the second after its order was captured."""
    first = Attempt.objects.filter(
        delivery=OuterRef("delivery"), number__lt=OuterRef("number"), is_delivered=True
    )
    captured = Change.objects.filter(
        checkout=OuterRef("delivery__event__checkout_uuid"),
        origin=Status.AUTHORIZED,
        to=Status.CAPTURED,
        created_at__lt=OuterRef("started_at"),
    )
    again = _delivered(merchant, EventType.AUTHORIZED).filter(number__gt=1)
    return again.filter(Exists(first), Exists(captured)).exists()


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
            delivery__subscription=newer.subscription_id,
        )
        if both.exists():
            return True
    return False
