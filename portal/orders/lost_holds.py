"""Explanations for a lapsed hold, from the attempts, the responses to them, and the capture calls.

Rule portal.timeline.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import Count, Min, QuerySet

from checkout.models import ApiCall, Checkout
from checkout.states import VoidReason
from config.lib.database import partitions
from payments.models import Operation
from portal.templatetags.portal import time_of
from webhooks import lookup, retention
from webhooks.models import Attempt, EventType

MAX_ATTEMPTS = 20  # how many attempts are read, at most; the retry schedule has fewer


class RefusedCaptures(NamedTuple):
    """A response to capture calls before the hold ended, and how many calls got this response."""

    status: int
    error_code: str
    times: int


def reason_of_lapse(checkout: Checkout) -> str:
    """Return a sentence that says why no capture came in time, or "" if the hold did not lapse."""
    if checkout.void_reason != VoidReason.AUTH_EXPIRED or checkout.voided_at is None:
        return ""
    ended = f"the hold ended at {time_of(checkout.voided_at)}"
    attempts = _scheduled_attempts(checkout)
    captures = ApiCall.objects.filter(
        merchant=checkout.merchant_id,
        checkout_uuid=checkout.pk,
        path__endswith="/capture",
        pk__range=partitions.ids_made_since(checkout.pk),
    )
    late_capture = captures.filter(created_at__gte=checkout.voided_at).order_by("created_at").first()
    if calls := _capture_calls_sentence(checkout, captures.filter(created_at__lt=checkout.voided_at)):
        return f"{calls}, so {ended}."
    if not attempts:
        return _missing_attempt_reason(checkout, checkout.voided_at, ended)
    sent = f"We sent checkout.authorized at {time_of(attempts[0].started_at)}."
    if any(attempt.is_delivered for attempt in attempts) and late_capture is None:
        return (
            f"{sent} Your endpoint answered {_answers_sentence(attempts)}, but no capture came, so {ended}."
        )
    ending = "and no capture came, so"
    if late_capture:
        ending = f"and its capture came at {time_of(late_capture.created_at)}, too late:"
    return f"{sent} Your endpoint answered {_answers_sentence(attempts)} {ending} {ended}."


def _capture_calls_sentence(checkout: Checkout, captures: QuerySet[ApiCall]) -> str:
    """Return the start of a sentence about the capture calls and our responses, or "" if there was no call."""
    if responses := _refused_captures(captures):
        if any(response.status == 504 for response in responses):
            return "Your server called capture in time, but the bank did not answer"
        codes = ", ".join(f"{response.status} {response.error_code}".strip() for response in responses)
        tries = f"{_times_words(sum(response.times for response in responses))} with {codes}"
        return f"Your server called capture, and we answered {tries}. No capture was accepted"
    if Operation.objects.filter(payment=checkout.payment_id, kind=Operation.Kind.CAPTURE).exists():
        # The log of the calls has been deleted, so the responses to them are not known.
        return "Your server called capture, and no capture was accepted"
    return ""


def _refused_captures(captures: QuerySet[ApiCall]) -> list[RefusedCaptures]:
    responses = captures.values("status", "error_code")
    counted = responses.annotate(times=Count("pk"), first=Min("created_at")).order_by("first")
    return [RefusedCaptures(row["status"], row["error_code"], row["times"]) for row in counted]


def _missing_attempt_reason(checkout: Checkout, voided_at: datetime, ended: str) -> str:
    """Return a sentence that explains a lapse if the database has no attempt to notify the merchant."""
    if (checkout.authorized_at or voided_at) < retention.events_kept_since():
        return f"No capture came, so {ended}. The log of that time is no longer kept."
    events = lookup.events_about(checkout.pk).filter(type=EventType.AUTHORIZED).values_list("pk", flat=True)
    if lookup.deliveries_of(list(events)).exists():
        return f"We had not sent checkout.authorized yet, and no capture came, so {ended}."
    return (
        "You had no endpoint for checkout.authorized when the hold began, so we did not send it. "
        f"No capture came, so {ended}."
    )


def _scheduled_attempts(checkout: Checkout) -> Sequence[Attempt]:
    """Return the scheduled attempts to deliver checkout.authorized, oldest first."""
    rows = lookup.attempts_about(checkout.pk).filter(merchant=checkout.merchant_id)
    scheduled = rows.filter(event_type=EventType.AUTHORIZED, actor="").order_by("started_at", "number")
    return list(scheduled[:MAX_ATTEMPTS])


def _answers_sentence(attempts: Sequence[Attempt]) -> str:
    counted = Counter(str(attempt.http_status or "nothing") for attempt in attempts)
    parts = [answer if times == 1 else f"{answer} {_times_words(times)}" for answer, times in counted.items()]
    return ", then ".join(parts)


def _times_words(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
