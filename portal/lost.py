"""Why a hold was lost, in words: what was sent when, what came back, and whether a capture was tried."""

from collections.abc import Sequence

from django.conf import settings

from checkout.models import ApiCall, Checkout
from checkout.states import VoidReason
from config.lib import clock
from portal.happenings import time_of, verb_of
from webhooks.models import Attempt, Delivery, EventType


def why(checkout: Checkout, attempts: Sequence[Attempt], calls: Sequence[ApiCall]) -> str:
    """Return why nobody captured in time, "" where the hold did not lapse.

    `attempts` and `calls` are the checkout's, oldest first.
    """
    if checkout.void_reason != VoidReason.AUTH_EXPIRED or checkout.voided_at is None:
        return ""
    ended = f"the hold ended at {time_of(checkout.voided_at)}"
    told = [
        attempt for attempt in attempts if attempt.event_type == EventType.AUTHORIZED and not attempt.actor
    ]
    captures = [call for call in calls if verb_of(call) == "capture"]
    refused = [call for call in captures if call.created_at < checkout.voided_at]
    late = next((call for call in captures if call.created_at >= checkout.voided_at), None)
    if refused:
        codes = ", ".join(
            dict.fromkeys(f"{call.status or 'no answer'} {call.error_code}".strip() for call in refused)
        )
        tries = f"{_times(len(refused))} with {codes}"
        return f"Your server called capture, and we answered {tries}. No capture was accepted, so {ended}."
    if not told and clock.now() - checkout.voided_at > settings.WEBHOOK_RETENTION:
        return f"No capture came, so {ended}. What was sent then is no longer kept."
    if not told and Delivery.objects.filter(event__checkout_uuid=checkout.pk).exists():
        return f"We had not sent checkout.authorized yet, and no capture came, so {ended}."
    if not told:
        return (
            "We had no webhook endpoint to tell, and no capture came, so "
            f"{ended}. Set an endpoint that takes checkout.authorized."
        )
    sent = f"We sent checkout.authorized at {time_of(told[0].started_at)}."
    if any(attempt.is_delivered for attempt in told) and late is None:
        return f"{sent} Your endpoint answered {_answers(told)}, but no capture came, so {ended}."
    came = (
        f"and its capture came at {time_of(late.created_at)}, too late:"
        if late
        else "and no capture came, so"
    )
    return f"{sent} Your endpoint answered {_answers(told)} {came} {ended}."


def _answers(told: Sequence[Attempt]) -> str:
    counted: dict[str, int] = {}
    for attempt in told:
        answer = str(attempt.http_status) if attempt.http_status else "nothing"
        counted[answer] = counted.get(answer, 0) + 1
    parts = [answer if times == 1 else f"{answer} {_times(times)}" for answer, times in counted.items()]
    return ", then ".join(parts)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
