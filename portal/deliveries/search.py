"""The list of the delivery log: its filters, and a line for each row."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import QuerySet
from django.urls import reverse

from checkout.models import Checkout
from config.lib.database import partitions
from payments.models import Merchant
from portal import badges
from portal.badges import Badge
from portal.deliveries import log
from portal.orders import search
from portal.orders.search import Chip
from portal.templatetags.portal import when
from webhooks import lookup, resending
from webhooks.models import Attempt, Delivery, EventType, Subscription

OUTCOMES = (
    ("", "Any"),
    ("delivered", "Delivered"),
    ("failed", "Failed"),
    ("parked", "Parked"),
    ("waiting", "Waiting"),
)
# The sort columns, for those outcomes for which the list shows deliveries instead of attempts.
KEYS = {"parked": "ended_at", "waiting": "next_attempt_at"}
EMPTY_HEADINGS = {
    "parked": "No parked deliveries",
    "waiting": "No waiting deliveries",
    "failed": "No failed deliveries",
}
EMPTY_TEXTS = {"parked": "Every delivery arrived, is still being tried, or is no longer needed."}
TYPES = (("", "Any"), *((kind.value, kind.value) for kind in EventType))


class Filters(forms.Form):
    """The filters of the list, all of them optional."""

    q = forms.CharField(required=False, max_length=255)
    outcome = forms.ChoiceField(required=False, choices=OUTCOMES)
    event_type = forms.ChoiceField(required=False, choices=TYPES)
    since = forms.DateTimeField(required=False, validators=[search.check_year])
    until = forms.DateTimeField(required=False, validators=[search.check_year])


def matching_rows(merchant: Merchant, asked: dict[str, Any]) -> QuerySet[Any]:
    """Return the attempts that match the filters; for the outcomes parked and waiting, the deliveries."""
    outcome = asked.get("outcome")
    if outcome in KEYS:
        queued = Delivery.objects.filter(merchant=merchant, status=Delivery.Status.PENDING)
        waiting = (resending.parked_deliveries(merchant) if outcome == "parked" else queued).prefetch_related(
            "event"
        )
        # The index of waiting deliveries begins with the subscription.
        if outcome == "waiting":
            waiting = waiting.filter(subscription__in=Subscription.objects.filter(merchant=merchant))
        return _filter_rows(waiting, merchant, asked, delivery="pk")
    tried = Attempt.objects.filter(merchant=merchant).prefetch_related("delivery__event")
    if outcome:
        tried = tried.filter(lookup.result_condition(is_delivered=outcome == "delivered"))
    return _filter_rows(tried, merchant, asked, delivery="delivery")


def active_filters(asked: dict[str, Any]) -> list[Chip]:
    """Return the active filters."""
    found = []
    if asked.get("q"):
        found.append(Chip(f"“{asked['q']}”", {"q": ""}))
    if asked.get("outcome"):
        found.append(Chip(dict(OUTCOMES)[asked["outcome"]], {"outcome": ""}))
    if asked.get("event_type"):
        found.append(Chip(asked["event_type"], {"event_type": ""}))
    days = [name for name in ("since", "until") if asked.get(name)]
    return found + [Chip(f"{name} {when(asked[name])}", {name: ""}) for name in days]


def empty_heading(asked: dict[str, Any]) -> str:
    """Return the heading of an empty list that is filtered only by outcome; "" with other filters."""
    is_all = [name for name, value in asked.items() if value] == ["outcome"]
    return EMPTY_HEADINGS.get(asked["outcome"], "") if is_all else ""


def empty_text(asked: dict[str, Any]) -> str:
    """Return the sentence below the heading of an empty list."""
    return EMPTY_TEXTS.get(asked.get("outcome", ""), "The log shows all deliveries.")


def sort_field(asked: dict[str, Any]) -> str:
    """Return the name of the time field by which the rows are sorted."""
    return KEYS.get(asked.get("outcome", ""), "started_at")


def _filter_rows(
    rows: QuerySet[Any], merchant: Merchant, asked: dict[str, Any], *, delivery: str
) -> QuerySet[Any]:
    """Return the rows that match the filters for text, event type and time.

    `delivery` names the column of the rows that holds the delivery's id.
    """
    if asked.get("q"):
        found = _matching_deliveries(merchant, asked["q"].strip())
        rows = rows.filter(**{f"{delivery}__in": found}) if found else rows.none()
        rows = rows.filter(pk__range=partitions.id_range_of(*found)) if found else rows
    if asked.get("event_type"):
        rows = rows.filter(event_type=lookup.EventTypeValue(asked["event_type"]))
    if asked.get("since"):
        rows = rows.filter(**{f"{sort_field(asked)}__gte": asked["since"]})
    if asked.get("until"):
        rows = rows.filter(**{f"{sort_field(asked)}__lte": asked["until"]})
    return rows


def _matching_deliveries(merchant: Merchant, text: str) -> list[UUID]:
    """Return the deliveries for a text that is an event's id, a checkout's id, or an order id."""
    uuid = search.parse_uuid(text)
    orders = Checkout.objects.filter(merchant=merchant, merchant_order_id__iexact=text).order_by(
        "-created_at"
    )
    checkouts: list[UUID] = list(orders.values_list("pk", flat=True)[: search.MAX_MATCHES])
    if uuid:
        checkouts.append(uuid)
    events = list(lookup.events_about(*checkouts).values_list("pk", flat=True)[: search.MAX_MATCHES])
    if uuid:
        events.append(uuid)
    return list(lookup.deliveries_of(events).filter(merchant=merchant).values_list("pk", flat=True))


def lines_of(merchant: Merchant, found: Sequence[Attempt | Delivery]) -> list[dict[str, Any]]:
    """Return a line for each attempt or delivery, with its order."""
    found = [row for row in found if _is_whole(row)]
    deliveries = [row.delivery if isinstance(row, Attempt) else row for row in found]
    wanted = {delivery.event.checkout_uuid for delivery in deliveries if delivery.event.checkout_uuid}
    orders = dict(
        Checkout.objects.filter(merchant=merchant, pk__in=wanted).values_list("pk", "merchant_order_id")
    )
    latest = _latest_attempts([row.pk for row in found if isinstance(row, Delivery)])
    parked = [delivery.pk for delivery in deliveries if delivery.status == Delivery.Status.PARKED]
    rows = Delivery.objects.filter(pk__in=parked)
    useful = set(resending.sendable_deliveries(rows).values_list("pk", flat=True)) if parked else set()
    return [
        _list_line(row, row if isinstance(row, Attempt) else latest.get(row.pk), orders, useful)
        for row in found
    ]


def _is_whole(row: Attempt | Delivery) -> bool:
    """Return whether the row's delivery and event exist: their partition can be dropped between two reads."""
    delivery = getattr(row, "delivery", None) if isinstance(row, Attempt) else row
    return hasattr(delivery, "event")


def newest_too_late(merchant: Merchant) -> dict[str, str] | None:
    """Return the newest parked delivery that cannot be sent again: its event, its order, and why.

    The order is "" if the event has none.
    """
    newest = resending.parked_deliveries(merchant).order_by("-ended_at")[: resending.MAX_CHECKED]
    useful = resending.sendable_deliveries(newest).values_list("pk", flat=True)
    rows = resending.parked_deliveries(merchant).exclude(pk__in=list(useful)).prefetch_related("event")
    found = rows.order_by("-ended_at").first()
    if found is None:  # it has just been closed
        return None
    about = found.event.checkout_uuid
    order = Checkout.objects.filter(merchant=merchant, pk=about).first() if about else None
    return {
        "type": found.event.type,
        "order": order.merchant_order_id if order else "",
        "why": _failure_reason(found),
    }


def _failure_reason(delivery: Delivery) -> str:
    if delivery.event.body_deleted_at is not None:
        return "Its personal data has been deleted."
    return "Its hold has ended." if log.announces_ended_hold(delivery) else "It is too old to be sent."


def _latest_attempts(delivery_uuids: Sequence[UUID]) -> dict[UUID, Attempt]:
    """Return the latest attempt of each delivery that has one."""
    rows = lookup.attempts_of_deliveries(delivery_uuids).defer("response_excerpt")
    return {row.delivery_id: row for row in rows.order_by("delivery", "-number").distinct("delivery")}


def _list_line(
    row: Attempt | Delivery, attempt: Attempt | None, orders: dict[UUID, str], useful: Collection[UUID]
) -> dict[str, Any]:
    delivery = row.delivery if isinstance(row, Attempt) else row
    number = row.number if isinstance(row, Attempt) else delivery.attempt_count
    waits = delivery.status == Delivery.Status.PARKED and number == delivery.attempt_count
    answer = ""
    if attempt and attempt.is_delivered is not None:
        answer = str(attempt.http_status) if attempt.http_status else "no answer"
    return {
        "id": f"{delivery.pk}-{number}",
        "address": f"{reverse('portal_delivery', args=[delivery.pk])}?attempt={number}",
        "delivery": delivery,
        "can_tick": waits and delivery.pk in useful,
        "number": number,
        "order": orders.get(delivery.event.checkout_uuid, "") if delivery.event.checkout_uuid else "",
        "badge": _badge_of_line(row, delivery, "too late" if waits and delivery.pk not in useful else ""),
        "answer": answer,
        "took": attempt.duration_ms if attempt else None,
        "at": row.started_at if isinstance(row, Attempt) else delivery.ended_at or delivery.next_attempt_at,
    }


def _badge_of_line(row: Attempt | Delivery, delivery: Delivery, note: str) -> Badge:
    """Return a line's badge with the note. The badge of a closed delivery has no note."""
    badge = badges.of_attempt(delivery, row) if isinstance(row, Attempt) else badges.of_delivery(delivery)
    return badge._replace(note=note) if note and delivery.closed_at is None else badge
