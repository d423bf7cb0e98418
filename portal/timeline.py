"""All that happened to a checkout, on one line of time: states, calls, webhook attempts, the bank, the ledger."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from checkout.models import ApiCall, Change, Checkout
from config.lib import clock
from portal import happenings, lost
from portal.actors import Names
from portal.happenings import Entry
from webhooks.models import Attempt


@dataclass(frozen=True)
class Story:
    """What happened, newest first, and why a hold was lost where one was."""

    entries: Sequence[Entry]
    why_voided: str


def of(checkout: Checkout) -> Story:
    """Return the story of a checkout read with its payment and merchant."""
    names = Names(checkout.merchant)
    attempts = list(
        Attempt.objects.filter(merchant=checkout.merchant_id, delivery__event__checkout_uuid=checkout.pk)
        .select_related("delivery__event")
        .order_by("started_at", "number")
    )
    of_checkout = ApiCall.objects.filter(merchant=checkout.merchant_id, checkout_uuid=checkout.pk)
    calls = list(of_checkout.order_by("created_at", "pk"))
    changes = list(Change.objects.filter(checkout=checkout))
    entries = [
        *happenings.of_states(
            checkout, changes, names, has_create=any(happenings.verb_of(call) == "create" for call in calls)
        ),
        *happenings.of_calls(calls, names),
        *happenings.of_attempts(attempts),
        *happenings.of_bank(checkout),
        *happenings.of_split(checkout),
    ]
    names.fill()
    held_at = checkout.authorized_at
    placed = [_placed(entry, held_at, names) for entry in entries]
    newest_first = sorted(placed, key=lambda entry: (entry.at, entry.kind != "state"), reverse=True)
    return Story(newest_first, lost.why(checkout, attempts, calls))


def as_json(checkout: Checkout) -> dict[str, Any]:
    """Return the story for programs and for support."""
    story = of(checkout)
    return {
        "checkout_uuid": str(checkout.pk),
        "merchant_order_id": checkout.merchant_order_id,
        "status": checkout.status,
        "amount": checkout.amount,
        "currency": checkout.currency,
        "why_voided": story.why_voided or None,
        "timeline": [
            {
                "at": clock.iso(entry.at),
                "kind": entry.kind,
                "title": entry.title,
                "text": entry.text,
                "request_id": entry.request_id or None,
                **entry.facts,
            }
            for entry in story.entries
        ],
    }


def _placed(entry: Entry, held_at: datetime | None, names: Names) -> Entry:
    since = entry.at - held_at if held_at else None
    return replace(entry, text=names.put(entry.text), since_hold=since)
