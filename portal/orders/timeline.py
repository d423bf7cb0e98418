"""A checkout's timeline, page by page: states, calls, webhook attempts, the bank, and the ledger.

Rule portal.timeline.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from django.core import signing

from checkout.models import ApiCall, Change, Checkout
from checkout.states import Status
from config.lib import clock
from config.lib.database import partitions
from payments.models import Merchant
from portal.models import ApiClient, User
from portal.orders import bank_entries, entries, folding, lost_holds, outside_actions, upcoming_entries
from portal.orders.entries import Entry, Window
from portal.orders.order import Order
from portal.orders.search import parse_uuid
from webhooks import lookup

PER_PAGE = 500
UNDER_WAY = (Status.AUTHORIZED, Status.REFUNDING)  # in these states the page refreshes automatically
UNKNOWN = {"customer": "By the customer", "user": "By a person", "client": "By a key"}


@dataclass(frozen=True)
class TimelinePage:
    """A page of the timeline, newest entry first. If the hold lapsed, `why_voided` is the reason.

    `older` is the cursor for the next page, or "" on the last page. The newest page also has the `upcoming`
    entries, latest first. If the order is neither authorized nor refunding, the newest page has `reads`: the
    read calls that came after all other entries.
    """

    entries: Sequence[Entry]
    why_voided: str
    older: str
    is_newest: bool
    upcoming: Sequence[Entry] = ()
    reads: Sequence[Entry] = ()


def timeline_page(order: Order, cursor: str = "") -> TimelinePage:
    """Return a page of an order's timeline for people: the page of the cursor, or the newest page."""
    page = _build_page(order, cursor, folding.fold_entries)
    reads = list(takewhile(folding.read_key, page.entries))
    if not page.is_newest or len(reads) == len(page.entries) or order.checkout.status in UNDER_WAY:
        return page
    return replace(page, reads=reads, entries=page.entries[len(reads) :])


def _build_page(
    order: Order, cursor: str, tidy: Callable[[Sequence[Entry]], Sequence[Entry]]
) -> TimelinePage:
    checkout, before = order.checkout, _parse_cursor(order.checkout, cursor)
    newest_first = sorted(_entries_of_page(order, before), key=folding.sort_key)[::-1]
    page_entries = _first_page_entries(newest_first)
    tidied_entries = tidy(page_entries)
    names = _actor_names(checkout.merchant, {entry.actor for entry in tidied_entries})
    upcoming = upcoming_entries.upcoming_entries_of(order) if before is None else []
    return TimelinePage(
        entries=[_with_actor_and_span(entry, checkout.authorized_at, names) for entry in tidied_entries],
        why_voided=lost_holds.reason_of_lapse(checkout),
        older=signing.dumps(page_entries[-1].at.isoformat(), salt=_cursor_salt(checkout))
        if len(newest_first) > len(page_entries)
        else "",
        is_newest=before is None,
        upcoming=[_with_actor_and_span(entry, checkout.authorized_at, {}) for entry in upcoming],
    )


def _entries_of_page(order: Order, before: datetime | None) -> list[Entry]:
    """Return the entries for a page, and at least one more entry if the timeline continues."""
    checkout, window = order.checkout, Window(before, PER_PAGE + 1)
    attempts = lookup.attempts_of_deliveries(list(order.deliveries))
    id_range = partitions.ids_made_since(checkout.pk)
    call_rows = ApiCall.objects.filter(
        merchant=checkout.merchant_id, checkout_uuid=checkout.pk, pk__range=id_range
    )
    calls = window.read_rows(call_rows)
    # The first call creates the checkout. If later calls fill this page, the first call is not on it.
    has_create = bool(calls) and entries.verb_of(calls[-1]) == "create"
    changes = window.read_rows(Change.objects.filter(checkout=checkout))
    candidates = [
        *entries.state_entries(order, changes[::-1], has_create=has_create),
        *entries.call_entries(reversed(calls)),
        *entries.attempt_entries(reversed(window.read_rows(attempts, "started_at")), order.deliveries),
        *bank_entries.bank_entries_of(order, window),
        *outside_actions.action_entries(order),
        *entries.split_entries(order),
    ]
    return [entry for entry in candidates if before is None or entry.at < before]


def _first_page_entries(newest_first: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries for one page.

    The next page has only entries with an earlier time. Entries with the same time are therefore on the same
    page if they fit.
    """
    if len(newest_first) <= PER_PAGE:
        return newest_first
    next_at = newest_first[PER_PAGE].at
    return [entry for entry in newest_first[:PER_PAGE] if entry.at != next_at] or newest_first[:PER_PAGE]


def _parse_cursor(checkout: Checkout, cursor: str) -> datetime | None:
    """Return the time before which an older page begins. For an invalid cursor, return None: the newest page."""
    try:
        return datetime.fromisoformat(signing.loads(cursor, salt=_cursor_salt(checkout)))
    except (signing.BadSignature, ValueError, TypeError, UnicodeError):
        return None


def _cursor_salt(checkout: Checkout) -> str:
    return f"timeline:{checkout.pk}"


def as_json(order: Order, cursor: str = "") -> dict[str, Any]:
    """Return a page of the timeline as data for a JSON file. It contains all entries, without merging any."""
    checkout, page = order.checkout, _build_page(order, cursor, list)
    return {
        "checkout_uuid": str(checkout.pk),
        "merchant_order_id": checkout.merchant_order_id,
        "status": checkout.status,
        "amount": checkout.amount,
        "currency": checkout.currency,
        "why_voided": page.why_voided or None,
        "timeline": [
            {
                "at": clock.iso(entry.at),
                "kind": entry.kind,
                "title": entry.title,
                "text": f"{entry.text} {entry.by}.".strip() if entry.by else entry.text,
                "request_id": entry.request_id or None,
                **entry.facts,
            }
            for entry in page.entries
        ],
        "older": page.older or None,
    }


def _with_actor_and_span(entry: Entry, held_at: datetime | None, names: dict[str, str]) -> Entry:
    since = entry.at - held_at if held_at else None
    return replace(entry, by=names[entry.actor] if entry.actor else "", since_hold=since)


def _actor_names(merchant: Merchant, actors: Collection[str]) -> dict[str, str]:
    """Return a text such as "By key …" for each actor. One look-up finds the names of all actors."""
    split = {actor: actor.partition(":")[::2] for actor in actors}
    names = {actor: UNKNOWN.get(kind, "Automatically") for actor, (kind, _) in split.items()}
    clients = [uuid for kind, text in split.values() if kind == "client" and (uuid := parse_uuid(text))]
    users = [uuid for kind, text in split.values() if kind == "user" and (uuid := parse_uuid(text))]
    for client in ApiClient.objects.filter(merchant=merchant, pk__in=clients):
        names[f"client:{client.pk}"] = f"By key “{client.name}”"
    for user in User.objects.filter(pk__in=users):
        names[f"user:{user.pk}"] = "By our support" if user.is_staff else f"By {user.email}"
    return names
