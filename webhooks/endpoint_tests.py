"""Tests endpoints: sends `webhook.test` events, and simulates failures of first attempts in the sandbox.

A person sends `webhook.test` in the portal. Rules event.test, trial.first_attempt.
"""

from uuid import UUID

from django.conf import settings
from django.db import transaction

from config.lib import clock, crypto, limits
from payments.models import Merchant
from webhooks import delivery, headers, health, outbox, subscriptions, targets, transport
from webhooks.delivery import Claimed, Result
from webhooks.models import Attempt, Delivery, Event, EventType
from webhooks.transport import Answer

DROPPED_AFTER = 3.0  # the longest time in seconds that a hanging endpoint can delay the sandbox


class TooManyTests(Exception):
    """The merchant has sent too many test events within an hour."""


def send_test_event(merchant: Merchant) -> Event:
    """Write a test event. It is sent even if the merchant has not subscribed to its type.

    Raises subscriptions.SubscriptionNotFound, TooManyTests. Rule limit.test_events.
    """
    with transaction.atomic(savepoint=True):
        subscriptions.read_subscription(merchant)
        if not limits.spend("test_events", str(merchant.pk)):
            raise TooManyTests
        return outbox.emit(merchant, EventType.TEST, {}, at=clock.now())


def refuse_first_attempt(delivery_uuid: UUID) -> None:
    """Record a leased first attempt as if the endpoint had answered 500.

    The request is not sent. The usual retries follow.
    """
    leased = Delivery.objects.get(pk=delivery_uuid)
    if leased.lease_token is not None:
        _record_answer(leased, Answer(500, health.REFUSED_BY_SANDBOX, "", 0))


def drop_first_answer(delivery_uuid: UUID) -> None:
    """Make a leased first attempt, but record it as if no answer had arrived. The usual retries follow."""
    answer = _make_attempt(delivery_uuid, DROPPED_AFTER)
    if answer is not None:
        leased, result = answer
        has_result = result.http_status is not None or (result.error_message or "").startswith("timeout")
        _record_answer(
            leased, Answer(None, health.DROPPED_BY_SANDBOX, "", result.duration_ms) if has_result else result
        )


def send_first_attempt(delivery_uuid: UUID) -> None:
    """Make a leased first attempt now, and record the answer."""
    answer = _make_attempt(delivery_uuid, transport.DEADLINE_SECONDS)
    if answer is not None:
        _record_answer(*answer)


def _make_attempt(delivery_uuid: UUID, deadline_seconds: float) -> tuple[Delivery, Answer] | None:
    """Make the first attempt of a leased delivery; return the delivery and the answer.

    Return None if the delivery is no longer leased.
    """
    leased = Delivery.objects.select_related("event", "subscription").get(pk=delivery_uuid)
    if leased.lease_token is None:
        return None
    at = clock.now()
    Attempt.objects.filter(pk=leased.lease_token).update(started_at=at)
    body = leased.event.plain_body
    secrets = subscriptions.signing_secrets(leased.subscription, at)
    claimed = Claimed(
        delivery_id=str(leased.pk),
        lease_token=str(leased.lease_token),
        attempt_number=leased.attempt_count,
        claimed_at=at,
        event_id=str(leased.event_id),
        event_type=leased.event_type,
        url=leased.subscription.url,
        is_urgent=leased.is_urgent,
        sealed_secrets=[crypto.encrypt(secret) for secret in secrets],
        merchant_uuid=str(leased.merchant_id),
        body=body,
        checkout_uuid=str(leased.event.checkout_uuid),
        traceparent="",
    )
    return leased, _await_answer(claimed, body, deadline_seconds)


def _await_answer(claimed: Claimed, body: bytes, deadline_seconds: float) -> Answer:
    return transport.run(_post_event(claimed, body, deadline_seconds))


async def _post_event(claimed: Claimed, body: bytes, deadline_seconds: float) -> Answer:
    loopback = settings.WEBHOOK_LOOPBACK
    try:
        url = targets.check_url(claimed.url, allow_loopback=loopback)
    except targets.TargetRefused:
        return Answer(None, "address not allowed", "", 0)
    async with transport.open_pool(allow_loopback=loopback) as pool:
        signed = headers.signed_headers(claimed, body)
        return await transport.post(pool, url, signed, body, deadline_seconds=deadline_seconds)


def _record_answer(leased: Delivery, answer: Answer) -> None:
    lease = str(leased.pk), str(leased.lease_token)
    delivery.record_results(
        [Result(*lease, answer.http_status, answer.error_message, answer.duration_ms, answer.excerpt)]
    )
