"""Objects for the portal's tests: a merchant with people in every role, an order, an endpoint and a key."""

import math
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from checkout import authorizations, captures
from checkout.models import Checkout
from config.lib import clock
from payments.models import BalanceEntry, Merchant
from payments.provider import CardUse
from payments.providers.sandbox import bank
from portal import keys, team
from portal.dashboard.histogram import SLOTS, Scale
from portal.models import ApiClient, Invitation, Membership, Role, User
from tests import factories
from tests.factories import CAUSE, CustomerFactory
from tests.portal import people
from webhooks import delivery, outbox
from webhooks.models import Delivery, EventType, Subscription

URL = "http://127.0.0.1:9/hooks"  # no server listens there, because the tests record the answers
FORM = {
    "name": "Acme Tickets",
    "brand_colour": "#1F4596",
    "country": "GB",
    "time_zone": "Europe/London",
    "support_url": "",
    "terms_url": "",
    "privacy_url": "",
    "shop_url": "",
    "return_hosts": "",
    "unpaid_minutes": "",
}


def person(merchant: Merchant, role: Role | str, email: str = "") -> Membership:
    """Create a person with a role for a merchant."""
    user, _ = User.objects.get_or_create(email=email or f"{role}@{merchant.pk.hex[-8:]}.example")
    return Membership.objects.create(merchant=merchant, user=user, role=role)


def browser(membership: Membership, *, is_fresh: bool = True) -> Client:
    """Return a browser in which the person is signed in, with a fresh proof of identity if `is_fresh`."""
    client = Client(enforce_csrf_checks=False)
    client.force_login(membership.user, backend="allauth.account.auth_backends.AuthenticationBackend")
    people.prove(client, membership.user, ago=0 if is_fresh else 600)
    session = client.session
    session["merchant"] = str(membership.merchant_id)
    session.save()
    return client


def client_of(role: Role) -> Any:
    """Return a fixture: a browser in which a person with this role at Acme is signed in."""

    @pytest.fixture
    def client(acme: Merchant) -> Client:
        return browser(person(acme, role))

    return client


def captured(merchant: Merchant, **order: Any) -> Checkout:
    """Create a captured checkout."""
    unpaid = factories.checkout(merchant, **order)
    held = hold(unpaid)
    return captures.capture(merchant, held.pk, cause=CAUSE)


def hold(unpaid: Checkout, card: str = "4242424242424242") -> Checkout:
    token = bank.tokenise(subject=unpaid.pk, number=card)
    authorizations.authorize(unpaid.pk, card=CardUse(token), lead=CustomerFactory.create(), cause=CAUSE)
    return Checkout.objects.select_related("merchant", "payment", "lead").get(pk=unpaid.pk)


def deliver(
    merchant: Merchant, http_status: int | None, error: str | None = None, excerpt: str = ""
) -> Delivery:
    """Record this response as the result of the merchant's next due delivery."""
    (claimed,) = delivery.claim(slots=1, general_slots=1)
    result = delivery.Result(claimed.delivery_id, claimed.lease_token, http_status, error, 340, excerpt)
    delivery.record_results([result])
    return Delivery.objects.get(merchant=merchant, pk=claimed.delivery_id)


def parked(merchant: Merchant, checkout: Checkout | None = None) -> Delivery:
    """Create a parked delivery."""
    event = outbox.emit(
        merchant, EventType.VOIDED, {}, at=clock.now(), checkout_uuid=checkout.pk if checkout else None
    )
    rows = Delivery.objects.filter(event=event)
    rows.update(status="parked", next_attempt_at=None, ended_at=timezone.now())
    return rows.get()


def payout(merchant: Merchant, amount: int = 8709, reference: str = "po_1") -> BalanceEntry:
    """Create a payout to the merchant's bank account, in minor units."""
    return BalanceEntry.objects.create(
        merchant=merchant,
        account=f"acct_{merchant.pk.hex[-8:]}",
        reference=f"txn_{reference}",
        kind=BalanceEntry.Kind.PAYOUT,
        amount=-amount,
        currency="GBP",
        made_at=clock.now(),
        available_at=clock.now() + timedelta(days=2),
        payout=reference,
    )


class Stage:
    """A merchant with one object for each kind of id that occurs in the portal's addresses."""

    def __init__(self, merchant: Merchant) -> None:
        self.merchant = merchant
        self.people = {role: person(merchant, role) for role in Role}
        self.target = person(merchant, Role.VIEWER, f"target@{merchant.pk.hex[-8:]}.example")
        factories.subscribe(merchant, url=URL, event_types=["*"])
        self.checkout = captured(merchant, merchant_order_id=f"A-{merchant.pk.hex[-8:]}")
        self.delivery = parked(merchant, self.checkout)
        self.client: ApiClient = keys.create_client(merchant, "Shop backend", ["checkouts:read"]).client
        self.invitation: Invitation = team.invite(
            self.people[Role.OWNER], f"new@{merchant.pk.hex[-8:]}.example", Role.VIEWER
        )

        self.payout = payout(merchant)

    def ids(self) -> dict[str, Any]:
        """Return the objects' ids, keyed by the parameter names in the addresses."""
        return {
            "checkout_uuid": self.checkout.pk,
            "delivery_uuid": self.delivery.pk,
            "entry_uuid": self.payout.pk,
            "client_uuid": self.client.pk,
            "invitation_uuid": self.invitation.pk,
            "membership_uuid": self.target.pk,
        }


def saved(merchant: Merchant) -> Subscription:
    """Create the merchant's endpoint, and subscribe it to all events."""
    return factories.subscribe(merchant, url=URL, event_types=["*"]).subscription


def slot_of(scale: Scale, seconds: float) -> int:
    """Return the histogram slot in which the database counts a duration."""
    share = math.log(max(seconds, scale.low) / scale.low) / math.log(scale.high / scale.low)
    return min(SLOTS - 1, int(share * SLOTS))


def save(client: Client, **changes: Any) -> Any:
    return client.post("/portal/settings/save", FORM | changes)
