"""The list in the delivery log: its filters, and a line for each row."""

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
# For these outcomes, the list shows deliveries instead of attempts. The value is the time field that sorts the
# deliveries.
SORT_FIELDS = {"parked": "ended_at", "waiting": "next_attempt_at"}
EMPTY_HEADINGS = {
    "parked": "No parked deliveries",
    "waiting": "No waiting deliveries",
    "failed": "No failed deliveries",
}
EMPTY_TEXTS = {"parked": "Every delivery arrived, is still being tried, or is no longer needed."}
TYPES = (("", "Any"), *((kind.value, kind.value) for kind in EventType))


class Filters(forms.Form):
    """The list's filters, all of them optional."""

    q = forms.CharField(required=False, max_length=255)
    outcome = forms.ChoiceField(required=False, choices=OUTCOMES)
    event_type = forms.ChoiceField(required=False, choices=TYPES)
    since = forms.DateTimeField(required=False, validators=[search.check_year])
    until = forms.DateTimeField(required=False, validators=[search.check_year])


def matching_rows(merchant: Merchant, filters: dict[str, Any]) -> QuerySet[Any]:
    """Return the attempts that match the filters. For the outcomes "parked" and "waiting", return deliveries."""
    outcome = filters.get("outcome")
    if outcome in SORT_FIELDS:
        pending = Delivery.objects.filter(merchant=merchant, status=Delivery.Status.PENDING)
        deliveries = (
            resending.parked_deliveries(merchant) if outcome == "parked" else pending
        ).prefetch_related("event")
        # Filter waiting deliveries by subscription too, because their index begins with the subscription.
        if outcome == "waiting":
            deliveries = deliveries.filter(subscription__in=Subscription.objects.filter(merchant=merchant))
        return _filter_rows(deliveries, merchant, filters, delivery="pk")
    attempts = Attempt.objects.filter(merchant=merchant).prefetch_related("delivery__event")
    if outcome:
        attempts = attempts.filter(lookup.result_condition(is_delivered=outcome == "delivered"))
    return _filter_rows(attempts, merchant, filters, delivery="delivery")


def active_filters(filters: dict[str, Any]) -> list[Chip]:
    """Return the active filters."""
    chips = []
    if filters.get("q"):
        chips.append(Chip(f"“{filters['q']}”", {"q": ""}))
    if filters.get("outcome"):
        chips.append(Chip(dict(OUTCOMES)[filters["outcome"]], {"outcome": ""}))
    if filters.get("event_type"):
        chips.append(Chip(filters["event_type"], {"event_type": ""}))
    time_filters = [name for name in ("since", "until") if filters.get(name)]
    return chips + [Chip(f"{name} {when(filters[name])}", {name: ""}) for name in time_filters]


def empty_heading(filters: dict[str, Any]) -> str:
    """Return the heading of an empty list if outcome is the only filter, else ""."""
    is_only_outcome = [name for name, value in filters.items() if value] == ["outcome"]
    return EMPTY_HEADINGS.get(filters["outcome"], "") if is_only_outcome else ""


def empty_text(filters: dict[str, Any]) -> str:
    """Return the sentence below the heading of an empty list."""
    return EMPTY_TEXTS.get(filters.get("outcome", ""), "The log shows all deliveries.")


def sort_field(filters: dict[str, Any]) -> str:
    """Return the name of the time field that sorts the rows."""
    return SORT_FIELDS.get(filters.get("outcome", ""), "started_at")


def _filter_rows(
    rows: QuerySet[Any], merchant: Merchant, filters: dict[str, Any], *, delivery: str
) -> QuerySet[Any]:
    """Return the rows that match the filters for text, event type and time.

    `delivery` names the column in which the rows have the delivery's id.
    """
    if filters.get("q"):
        delivery_uuids = _matching_deliveries(merchant, filters["q"].strip())
        rows = rows.filter(**{f"{delivery}__in": delivery_uuids}) if delivery_uuids else rows.none()
        rows = rows.filter(pk__range=partitions.id_range_of(*delivery_uuids)) if delivery_uuids else rows
    if filters.get("event_type"):
        rows = rows.filter(event_type=lookup.EventTypeValue(filters["event_type"]))
    if filters.get("since"):
        rows = rows.filter(**{f"{sort_field(filters)}__gte": filters["since"]})
    if filters.get("until"):
        rows = rows.filter(**{f"{sort_field(filters)}__lte": filters["until"]})
    return rows


def _matching_deliveries(merchant: Merchant, text: str) -> list[UUID]:
    """Return the ids of the deliveries that match a text: an event's id, a checkout's id, or an order id."""
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


def list_lines(merchant: Merchant, rows: Sequence[Attempt | Delivery]) -> list[dict[str, Any]]:
    """Return a line for each attempt or delivery, with the order that the event is about."""
    rows = [row for row in rows if _has_event(row)]
    deliveries = [row.delivery if isinstance(row, Attempt) else row for row in rows]
    checkout_uuids = {delivery.event.checkout_uuid for delivery in deliveries if delivery.event.checkout_uuid}
    orders = dict(
        Checkout.objects.filter(merchant=merchant, pk__in=checkout_uuids).values_list(
            "pk", "merchant_order_id"
        )
    )
    latest = _latest_attempts([row.pk for row in rows if isinstance(row, Delivery)])
    parked_uuids = [delivery.pk for delivery in deliveries if delivery.status == Delivery.Status.PARKED]
    sendable = _sendable_uuids(parked_uuids) if parked_uuids else set()
    return [
        _list_line(row, row if isinstance(row, Attempt) else latest.get(row.pk), orders, sendable)
        for row in rows
    ]


def _sendable_uuids(delivery_uuids: Sequence[UUID]) -> set[UUID]:
    rows = Delivery.objects.filter(pk__in=delivery_uuids)
    return set(resending.sendable_deliveries(rows).values_list("pk", flat=True))


def _has_event(row: Attempt | Delivery) -> bool:
    """Return whether the row's delivery and event exist. Their partition can be dropped between two reads."""
    delivery = getattr(row, "delivery", None) if isinstance(row, Attempt) else row
    return hasattr(delivery, "event")


def newest_unsendable(merchant: Merchant) -> dict[str, str] | None:
    """Return the newest parked delivery that cannot be sent again: its event type, its order, and the reason.

    The order is "" if the event is not about an order.
    """
    newest = resending.parked_deliveries(merchant).order_by("-ended_at")[: resending.MAX_CHECKED]
    sendable = resending.sendable_deliveries(newest).values_list("pk", flat=True)
    rows = resending.parked_deliveries(merchant).exclude(pk__in=list(sendable)).prefetch_related("event")
    delivery = rows.order_by("-ended_at").first()
    if delivery is None:  # a person has closed it in the meantime
        return None
    checkout_uuid = delivery.event.checkout_uuid
    order = Checkout.objects.filter(merchant=merchant, pk=checkout_uuid).first() if checkout_uuid else None
    return {
        "type": delivery.event.type,
        "order": order.merchant_order_id if order else "",
        "why": _failure_reason(delivery),
    }


def _failure_reason(delivery: Delivery) -> str:
    if delivery.event.body_deleted_at is not None:
        return "Its personal data has been deleted."
    return "Its hold has ended." if resending.is_hold_over(delivery) else "It is too old to be sent."


def _latest_attempts(delivery_uuids: Sequence[UUID]) -> dict[UUID, Attempt]:
    rows = lookup.attempts_of_deliveries(delivery_uuids).defer("response_excerpt")
    return {row.delivery_id: row for row in rows.order_by("delivery", "-number").distinct("delivery")}


def _list_line(
    row: Attempt | Delivery, attempt: Attempt | None, orders: dict[UUID, str], sendable: Collection[UUID]
) -> dict[str, Any]:
    delivery = row.delivery if isinstance(row, Attempt) else row
    number = row.number if isinstance(row, Attempt) else delivery.attempt_count
    is_parked = delivery.status == Delivery.Status.PARKED and number == delivery.attempt_count
    note = "too late" if is_parked and delivery.pk not in sendable else ""
    answer = ""
    if attempt and attempt.is_delivered is not None:
        answer = str(attempt.http_status) if attempt.http_status else "no answer"
    return {
        "id": f"{delivery.pk}-{number}",
        "address": f"{reverse('portal_delivery', args=[delivery.pk])}?attempt={number}",
        "delivery": delivery,
        "can_tick": is_parked and delivery.pk in sendable,
        "number": number,
        "order": orders.get(delivery.event.checkout_uuid, "") if delivery.event.checkout_uuid else "",
        "badge": _badge_of_line(row, delivery, note),
        "answer": answer,
        "took": attempt.duration_ms if attempt else None,
        "at": row.started_at if isinstance(row, Attempt) else delivery.ended_at or delivery.next_attempt_at,
    }


def _badge_of_line(row: Attempt | Delivery, delivery: Delivery, note: str) -> Badge:
    """Return a line's badge with a note. If the delivery is closed, the badge has no note."""
    badge = badges.of_attempt(delivery, row) if isinstance(row, Attempt) else badges.of_delivery(delivery)
    return badge._replace(note=note) if note and delivery.closed_at is None else badge
