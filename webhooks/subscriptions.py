"""Saves, approves and ends a merchant's subscription, and rotates its signing secrets (rule subscription.one)."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction

from config.lib import clock, wakeup
from config.lib.database import queries
from payments.models import Merchant
from webhooks import signing as signatures
from webhooks import statements
from webhooks.models import Endpoint, EventType, SigningSecret, Subscription
from webhooks.url_check import CheckedUrl

DELIVER_DUE = "webhooks.tasks.deliver_due"
GRACE = timedelta(hours=2)  # rule rotation.grace
# The newest secret and two previous secrets can sign, so that two rotations within two hours are possible.
MAX_SIGNING = 3
MAX_EXPIRED_SECRETS = 20  # maximum number of expired secrets that are kept for a subscription
SUBSCRIBABLE = ("*", *(kind.value for kind in EventType if kind != EventType.TEST))


class SubscriptionNotFound(Exception):
    """The merchant has no subscription."""


class RotationInProgress(Exception):
    """The subscription already has the maximum number of signing secrets.

    `until` contains the times at which the previous secrets expire, newest secret first. Rule rotation.full.
    """

    def __init__(self, until: list[datetime]) -> None:
        super().__init__()
        self.until = until


class SavedSubscription(NamedTuple):
    """A saved subscription. `signing_secret` is set only for a new subscription, because it is shown only once."""

    subscription: Subscription
    signing_secret: str | None
    is_changed: bool = True


class RotatedSecret(NamedTuple):
    """A new secret, and the time until which the previous secret also signs."""

    signing_secret: str
    previous_secret_expires_at: datetime | None


def save_subscription(
    merchant: Merchant, *, url: CheckedUrl, event_types: Sequence[str], is_approved: bool
) -> SavedSubscription:
    """Create the merchant's subscription with a secret, or change it and keep its secret.

    `is_approved` is true if the change is made by an owner, an admin or one of their keys. If a new address is not
    approved, it gets no personal data until `approve` is called. An unchanged address keeps its approval. Rule
    endpoint.approved.
    """
    new_types = list(dict.fromkeys(event_types))
    with transaction.atomic(savepoint=True):
        Merchant.objects.select_for_update(no_key=True).get(pk=merchant.pk)
        subscription = Subscription.objects.filter(merchant=merchant, ended_at=None).first()
        if subscription is None:
            subscription = Subscription.objects.create(
                merchant=merchant, url=url, event_types=new_types, is_approved=is_approved
            )
            return SavedSubscription(subscription, _create_secret(subscription))
        is_changed = _change_subscription(subscription, url, new_types, is_approved)
        return SavedSubscription(subscription, None, is_changed=is_changed)


def _change_subscription(
    subscription: Subscription, url: CheckedUrl, event_types: list[str], is_approved: bool
) -> bool:
    """Change a subscription; return whether its address, event types or approval have changed."""
    was = (subscription.url, subscription.event_types, subscription.is_approved)
    is_same_address = subscription.url == url
    is_approved = is_approved or (is_same_address and subscription.is_approved)
    subscription.url, subscription.event_types, subscription.is_approved = url, event_types, is_approved
    subscription.save(update_fields=["url", "event_types", "is_approved", "updated_at"])
    # This comes first, because deliveries must always be locked before endpoints.
    _hold_or_release(subscription)
    # The health of the old address does not apply to the new one.
    if not is_same_address:
        Endpoint.objects.filter(subscription=subscription).delete()
    return was != (url, event_types, is_approved)


def approve(merchant: Merchant, url: str) -> str:
    """Approve the subscription's address for personal data. Return it, or "" if `url` is a different address.

    Raises SubscriptionNotFound. Rule endpoint.approved.
    """
    with transaction.atomic(savepoint=True):
        subscription = _lock_subscription(merchant)
        if subscription.url != url:
            return ""
        subscription.is_approved = True
        subscription.save(update_fields=["is_approved"])
        _hold_or_release(subscription)
    return url


def _hold_or_release(subscription: Subscription) -> None:
    """If the address is approved, make the waiting deliveries of personal data due. Otherwise, hold them back."""
    statement = statements.RELEASE_PERSONAL if subscription.is_approved else statements.HOLD_PERSONAL
    parameters = {"subscription": subscription.pk, "type": EventType.OPTED_IN.value}
    if queries.execute(statement, parameters) and subscription.is_approved:
        wakeup.wake_after_commit(DELIVER_DUE)


def audit_facts(subscription: Subscription) -> dict[str, Any]:
    """Return the fields of a subscription that are recorded in the audit log."""
    return {
        "url": subscription.url,
        "event_types": subscription.event_types,
        "is_approved": subscription.is_approved,
    }


def read_subscription(merchant: Merchant) -> Subscription:
    """Return the merchant's subscription. Raises SubscriptionNotFound."""
    subscription = Subscription.objects.filter(merchant=merchant, ended_at=None).first()
    if subscription is None:
        raise SubscriptionNotFound
    return subscription


def has_subscribed(merchant: Merchant, event_type: EventType) -> bool:
    """Return whether the merchant has an endpoint that gets events of this type."""
    rows = Subscription.objects.filter(merchant=merchant, ended_at=None)
    return rows.filter(event_types__overlap=["*", event_type.value]).exists()


def end(merchant: Merchant) -> None:
    """End the subscription and park its waiting deliveries. Raises SubscriptionNotFound."""
    with transaction.atomic(savepoint=True):
        subscription = _lock_subscription(merchant)
        now = clock.now()
        subscription.ended_at = now
        subscription.save(update_fields=["ended_at"])
        queries.execute(statements.PARK_WAITING, {"subscription": subscription.pk, "now": now})


def rotate(merchant: Merchant, *, revoke_previous: bool = False) -> RotatedSecret:
    """Create a new secret. Each previous secret expires two hours after its replacement, or now if revoked.

    Raises SubscriptionNotFound. Raises RotationInProgress if the subscription already has the maximum number of
    signing secrets. Rules rotation.grace, rotation.revoke, rotation.repeat.
    """
    with transaction.atomic(savepoint=True):
        subscription = _lock_subscription(merchant)
        now = clock.now()
        until = _previous_expiries(subscription, now)
        if revoke_previous:
            subscription.secrets.filter(expires_at__gt=now).update(expires_at=now)
        elif len(until) + 1 >= MAX_SIGNING:
            raise RotationInProgress(until)
        expires_at = now if revoke_previous else now + GRACE
        subscription.secrets.filter(expires_at=None).update(expires_at=expires_at)
        secret = _create_secret(subscription)
        # A receiver that has only the new secret refuses the attempts in flight. Because of the new `updated_at`,
        # such a refusal is not final.
        Subscription.objects.filter(pk=subscription.pk).update(updated_at=now)
        ended = subscription.secrets.filter(expires_at__lte=now).order_by("-created_at")
        newest = list(ended.values_list("pk", flat=True)[:MAX_EXPIRED_SECRETS])
        # Expired secrets must be deleted. Otherwise, rotations could add rows without limit.
        ended.exclude(pk__in=newest).delete()
    return RotatedSecret(secret, None if revoke_previous else expires_at)


def revoke_previous(merchant: Merchant) -> bool:
    """Stop signing with the previous secrets. Return whether any of them still signed.

    Raises SubscriptionNotFound.
    """
    with transaction.atomic(savepoint=True):
        subscription = _lock_subscription(merchant)
        now = clock.now()
        return bool(subscription.secrets.filter(expires_at__gt=now).update(expires_at=now))


def previous_secret_expiries(subscription: Subscription) -> list[datetime]:
    """Return the times at which the previous secrets expire, newest secret first, without expired secrets.

    The list is empty if there is only one signing secret.
    """
    return _previous_expiries(subscription, clock.now())


def signing_secrets(subscription: Subscription, at: datetime) -> list[str]:
    """Return the secrets with which deliveries are signed at the given time, newest first."""
    rows = subscription.secrets.order_by("-created_at")
    return [row.secret for row in rows[:MAX_SIGNING] if row.expires_at is None or row.expires_at > at]


def _previous_expiries(subscription: Subscription, now: datetime) -> list[datetime]:
    unexpired = subscription.secrets.filter(expires_at__gt=now).order_by("-expires_at")
    return [expires_at for expires_at in unexpired.values_list("expires_at", flat=True) if expires_at]


def _lock_subscription(merchant: Merchant) -> Subscription:
    # With `no_key`, a transaction that inserts a row with a reference to this subscription does not wait for the
    # lock.
    rows = Subscription.objects.select_for_update(no_key=True).filter(merchant=merchant, ended_at=None)
    subscription = rows.first()
    if subscription is None:
        raise SubscriptionNotFound
    return subscription


def _create_secret(subscription: Subscription) -> str:
    secret = signatures.new_secret()
    SigningSecret.objects.create(subscription=subscription, secret=secret)
    return secret


def mark_having_deliveries(first: Iterable[UUID]) -> None:
    """Mark the subscriptions that have just got their first delivery.

    A marked subscription is deleted only after its deliveries.
    """
    # The order must always be the same, because each row stays locked until the transaction ends.
    for pk in sorted(first):
        Subscription.objects.filter(pk=pk).update(has_deliveries=True)
