"""The details on a delivery's page: the request, the response, and the times of the next attempts."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db.models import Q
from django.utils import timezone

from checkout.models import Checkout
from payments.models import Merchant
from portal import badges
from portal.badges import Badge
from portal.templatetags.portal import when_exactly
from webhooks import headers, resending, retries
from webhooks.delivery import describe_error, given_reason
from webhooks.models import PERSONAL, Attempt, Delivery, EventType

THREE_DAYS = "We try 9 times in about three days."
POLICIES: dict[str, str] = {  # for the event types with a special retry policy
    EventType.AUTHORIZED: "We try 4 times within the two minutes of the hold.",
    EventType.TEST: "A test event is sent once.",
}
LIVE_WITHIN = timedelta(seconds=20)
MAX_ATTEMPTS = 100  # the page shows only the latest attempts; a delivery can be resent without limit


@dataclass(frozen=True)
class Step:
    """A past or planned attempt of a delivery."""

    number: int
    words: str
    at: datetime
    tone: str


@dataclass(frozen=True)
class DeliveryDetails:
    """The details of a delivery, with the request and the response of one attempt."""

    delivery: Delivery
    attempt: Attempt | None
    badge: Badge
    sentence: str
    steps: list[Step]
    url: str
    request_lines: list[str]
    body: str
    is_masked: bool
    is_body_deleted: bool
    answer: str
    curl: str
    order: Checkout | None
    can_resend: bool
    is_over: bool  # the event announced a hold, and the hold has ended
    is_useful: bool  # if the event is sent again, the merchant can still act on it
    is_live: bool  # an attempt is running or about to begin, so the page refreshes


def delivery_details(
    merchant: Merchant, delivery: Delivery, *, number: int | None = None, reveal: bool = False
) -> DeliveryDetails:
    """Return the details of a delivery, with its attempt `number`. Without a number, use its latest attempt.

    They contain personal data only if `reveal` is set.
    """
    rows = Attempt.objects.filter(delivery=delivery).order_by("-number")
    attempts = list(reversed(rows[:MAX_ATTEMPTS]))
    requested = rows.filter(number=number).first() if number is not None else None
    attempt = requested or (attempts[-1] if attempts else None)
    event = delivery.event
    is_masked = event.type in PERSONAL and not reveal
    body = "" if is_masked or event.body_deleted_at else _indent_json(event.plain_body)
    url = delivery.subscription.url
    is_current_url = attempt is None or attempt.started_at >= delivery.subscription.updated_at
    orders = Checkout.objects.filter(merchant=merchant)
    return DeliveryDetails(
        delivery=delivery,
        attempt=attempt,
        badge=badges.of_delivery(delivery),
        sentence=_delivery_sentence(delivery, attempt, attempts),
        steps=_attempt_steps(delivery, attempts),
        url=url if is_current_url else "your endpoint at the time",
        request_lines=_sent_headers(delivery, attempt) if attempt else [],
        body=body,
        is_masked=is_masked and not event.body_deleted_at,
        is_body_deleted=bool(event.body_deleted_at),
        answer=_answer_text(attempt),
        curl="" if is_masked or event.body_deleted_at else _curl_command(url, delivery, attempt),
        order=orders.filter(pk=event.checkout_uuid).first() if event.checkout_uuid else None,
        can_resend=event.body_deleted_at is None and not _is_under_way(delivery),
        is_live=not reveal and is_live(delivery) and _is_latest(delivery, attempt),
        is_over=resending.is_hold_over(delivery),
        is_useful=delivery.status != Delivery.Status.DELIVERED and not resending.is_hold_over(delivery),
    )


def _is_under_way(delivery: Delivery) -> bool:
    is_pending = delivery.status == Delivery.Status.PENDING
    return is_pending and bool(delivery.resent_by or delivery.lease_token)


def is_live(delivery: Delivery) -> bool:
    """Return whether an attempt of the delivery is running or about to begin."""
    if delivery.status != Delivery.Status.PENDING or delivery.next_attempt_at is None:
        return False
    return delivery.lease_token is not None or delivery.next_attempt_at <= timezone.now() + LIVE_WITHIN


def _is_latest(delivery: Delivery, attempt: Attempt | None) -> bool:
    # If the attempt began after the delivery was read, its number is higher than the count.
    return attempt is None or attempt.number >= delivery.attempt_count


def _indent_json(body: bytes) -> str:
    try:
        return orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        return body.decode(errors="replace")


def _delivery_sentence(delivery: Delivery, attempt: Attempt | None, attempts: Sequence[Attempt]) -> str:
    if attempt is None:
        return f"Not sent yet. {_retry_policy(delivery)}"
    if attempt.is_delivered is None:
        return "It is being sent right now."
    reason = given_reason(attempt)
    answer = f"Your endpoint answered {attempt.http_status}{f': “{reason}”' if reason else ''}."
    if attempt.is_delivered:
        return f"Attempt {attempt.number} was delivered. {answer}"
    if not attempt.http_status:
        answer = f"No answer: {describe_error(attempt.error_message)}."
    return f"Attempt {attempt.number} failed. {answer} {_failure_sentence(delivery, attempts)}"


def _failure_sentence(delivery: Delivery, attempts: Sequence[Attempt]) -> str:
    if delivery.status == Delivery.Status.SUPERSEDED and delivery.event_type in PERSONAL:
        return "The event’s personal data has been deleted, so the event is not sent again."
    if delivery.status == Delivery.Status.SUPERSEDED or (
        delivery.status == Delivery.Status.PARKED and resending.is_hold_over(delivery)
    ):
        return "The hold has ended, so the event is not sent again."
    if delivery.status == Delivery.Status.PARKED:
        return "The event is not sent again automatically. Fix your endpoint, then send it again."
    if delivery.status != Delivery.Status.DELIVERED:
        next_at = delivery.next_attempt_at
        next_attempt = (
            f"Attempt {delivery.attempt_count + 1} is at {when_exactly(next_at)}. "
            if next_at and not delivery.lease_token
            else ""
        )
        return next_attempt + _retry_policy(delivery)
    delivered = next((attempt for attempt in reversed(attempts) if attempt.is_delivered), None)
    if delivered is None:
        return "Another attempt was delivered."
    return f"Attempt {delivered.number} was delivered at {when_exactly(delivered.started_at)}."


def _retry_policy(delivery: Delivery) -> str:
    policy = POLICIES.get(delivery.event.type, THREE_DAYS)
    if delivery.resent_by or delivery.resent_count:
        return f"{policy.removesuffix('.')}, plus the attempts that you request."
    return policy


def _attempt_steps(delivery: Delivery, attempts: list[Attempt]) -> list[Step]:
    """Return the past attempts, and all planned attempts."""
    steps = [_step_of_attempt(attempt) for attempt in attempts]
    is_under_way = delivery.lease_token is not None or (
        bool(attempts) and attempts[-1].number > delivery.attempt_count
    )
    if delivery.next_attempt_at is None or is_under_way:
        return steps
    planned = [delivery.next_attempt_at]
    automatic_at = delivery.returns_at if delivery.resent_by else delivery.next_attempt_at
    if automatic_at is not None:
        planned = planned[: bool(delivery.resent_by)] + retries.planned_attempts(
            _scheduled_attempts(delivery, automatic_at), automatic_at
        )
    first = delivery.attempt_count + 1
    last = first + len(planned) - 1
    return steps + [
        Step(number, "next" if number == first else "last" if number == last else "then", at, "")
        for number, at in enumerate(planned, start=first)
    ]


def _scheduled_attempts(delivery: Delivery, ended_at: datetime) -> retries.AttemptedDelivery:
    """Return the input for the retry schedule. Attempts that a person requested do not count."""
    return retries.AttemptedDelivery(
        event_type=delivery.event.type,
        delivery_id=delivery.pk,
        attempts=delivery.attempt_count - delivery.resent_count,
        event_at=delivery.event.created_at,
        ended_at=ended_at,
        valid_until=delivery.event.valid_until,
        http_status=None,
    )


def _step_of_attempt(attempt: Attempt) -> Step:
    if attempt.is_delivered is None:
        return Step(attempt.number, "under way", attempt.started_at, "move")
    words = str(attempt.http_status) if attempt.http_status else "no answer"
    return Step(attempt.number, words, attempt.started_at, "done" if attempt.is_delivered else "stop")


def _sent_headers(delivery: Delivery, attempt: Attempt) -> list[str]:
    """Return the headers that were sent, with a placeholder for each signature.

    Signatures are not stored. There is a placeholder for each secret that signed at that time.
    """
    timestamp = int(attempt.started_at.timestamp())
    secrets = delivery.subscription.secrets.filter(created_at__lte=attempt.started_at).filter(
        Q(expires_at=None) | Q(expires_at__gt=attempt.started_at)
    )
    count = max(1, secrets.count())
    return [
        "Content-Type: application/json",
        f"User-Agent: {headers.USER_AGENT}",
        f"X-Service-Event-Id: {delivery.event_id}",
        f"X-Service-Event-Type: {delivery.event.type}",
        f"X-Service-Delivery-Attempt: {attempt.number}",
        f"X-Service-Timestamp: {timestamp}",
        f"X-Service-Signature: t={timestamp},{','.join(['v1=…'] * count)}",
        f"webhook-id: {delivery.event_id}",
        f"webhook-timestamp: {timestamp}",
        f"webhook-signature: {' '.join(['v1,…'] * count)}",
    ]


def _answer_text(attempt: Attempt | None) -> str:
    if attempt is None or attempt.is_delivered is None:
        return ""
    error = describe_error(attempt.error_message) or "no answer"
    status_line = f"HTTP {attempt.http_status}" if attempt.http_status else error
    return f"{status_line}\n\n{attempt.response_excerpt}".strip()


def _curl_command(url: str, delivery: Delivery, attempt: Attempt | None) -> str:
    """Return shell commands that sign and send the request. The reader must insert the signing secret."""
    body = shlex.quote(delivery.event.plain_body.decode())
    header_values: dict[str, Any] = {
        "Content-Type": "application/json",
        "X-Service-Event-Id": delivery.event_id,
        "X-Service-Event-Type": delivery.event.type,
        "X-Service-Delivery-Attempt": attempt.number if attempt else 1,
    }
    header_options = " \\\n".join(f"  -H '{name}: {value}'" for name, value in header_values.items())
    return (
        "SECRET=whsec_…  # your signing secret\n"
        f"BODY={body}\n"
        "T=$(date +%s)\n"
        'V1=$(printf %s "$T.$BODY" | openssl dgst -sha256 -hmac "$SECRET" -hex | sed "s/.* //")\n'
        f"curl -i {shlex.quote(url)} \\\n{header_options} \\\n"
        '  -H "X-Service-Timestamp: $T" -H "X-Service-Signature: t=$T,v1=$V1" \\\n'
        '  --data-binary "$BODY"'
    )
