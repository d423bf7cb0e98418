"""The feed of a merchant's events, in the order in which they were written (rules events.*).

It is the way to catch up.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet
from rest_framework import serializers as drf
from rest_framework.request import Request
from rest_framework.response import Response

from config.lib import clock, cursor
from config.lib.api.view import ApiView
from config.lib.database import feed_horizon, partitions
from config.lib.database.partitions import CLOCKS_DIFFER
from payments.cause import caller_of
from payments.models import Merchant
from webhooks import lookup, outbox
from webhooks.api import responses, serializers
from webhooks.models import EVENTS, PERSONAL, Event, EventType, unseal

CUSTOMERS = "customers:read"  # the scope that shows personal data
USUAL, FURTHEST = timedelta(hours=24), timedelta(days=30)  # how far back a reader can begin
_COLUMNS = ("id", "type", "body", "body_deleted_at", "created_at", "written_at")


class Place(NamedTuple):
    """How far a reader has read: past the event `last`, among the events written at `at` or later.

    The reader began with the events that happened at `since` or later. Events that are written from `began`
    on are included regardless of their date.
    """

    at: datetime
    last: UUID
    since: datetime
    began: datetime


_KINDS = (datetime.fromisoformat, UUID, datetime.fromisoformat, datetime.fromisoformat)


class Events(ApiView):
    """Lists the merchant's events, oldest first, and always returns a cursor for the next call."""

    scopes = {"GET": "webhooks:read"}
    queries = {"GET": serializers.EventsQuery}

    def get(self, request: Request) -> Response:
        caller, asked = caller_of(request), self.query
        about = _parse_checkout_uuid(asked.get("checkout_uuid"))
        scope = f"events:{caller.merchant.pk}:{asked.get('type', '')}:{about or ''}"
        until = feed_horizon.horizon()
        place = _starting_place(asked, scope, until)
        rows = _events_after(caller.merchant, place, until)
        rows = rows.filter(checkout_uuid=about) if about else rows
        kind = lookup.OfType(asked.get("type", EventType.TEST))
        rows = rows.filter(type=kind) if "type" in asked else rows.exclude(type=kind)
        found = list(rows.order_by("written_at", "pk")[: asked["limit"]])
        listed = _list_entries(found, sees_customers=CUSTOMERS in caller.scopes)
        next_cursor = cursor.write_cursor(scope, *_end_of_page(found, asked["limit"], place, until))
        page = responses.EventFeedOut.write({"events": listed, "next_cursor": next_cursor})
        return Response({"data": page})


def _parse_checkout_uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        raise drf.ValidationError({"checkout_uuid": ["Must be the id of a checkout, a UUID."]}) from None


def _starting_place(asked: Mapping[str, Any], scope: str, until: datetime) -> Place:
    """Return the place to continue or begin from.

    Raises ValidationError, and InvalidCursor, also if a cursor comes with another `created_after`.
    """
    given: datetime | None = asked.get("created_after")
    if "cursor" in asked:
        place = Place(*cursor.read_cursor(asked["cursor"], scope, *_KINDS))
        if given not in (None, place.since):
            raise cursor.InvalidCursor
        _check_events_kept(place, until)
        return place
    furthest = min(FURTHEST, settings.WEBHOOK_RETENTION)
    if given and given < until - furthest:
        raise drf.ValidationError(
            {
                "created_after": [
                    f"Must be within the last {furthest.days} days, because older events are not in the feed."
                ]
            }
        )
    since = given or until - USUAL
    return Place(*_place_before(since - CLOCKS_DIFFER), since, began=max(since, until))


def _check_events_kept(place: Place, until: datetime) -> None:
    """Raise ValidationError if events were dropped that a reader at this place has not seen."""
    if place.at > until - partitions.YOUNGEST:
        return  # events that young are never dropped
    kept_from = partitions.starts_at(EVENTS)
    if kept_from is not None and place.at < kept_from:
        told = f"Events between this cursor and {clock.iso(kept_from)} have been deleted. "
        raise drf.ValidationError(
            {"cursor": [f"{told}Start again with created_after, and compare your orders with GET checkouts."]}
        )


def _place_before(at: datetime) -> tuple[datetime, UUID]:
    """Return a place before all events that are written at a moment or later."""
    return at, clock.first_id(at - CLOCKS_DIFFER)


def _events_after(merchant: Merchant, place: Place, until: datetime) -> QuerySet[Event, Any]:
    """Return the events written from a place on, until a moment.

    The range of ids does not change the result. It only lets PostgreSQL leave out the partitions of other
    days. An id is made just before its row is written. Events that are older than the column `written_at` all
    have one time in it, and their ids give their order.
    """
    lowest = min(clock.made_at(place.last), place.at - CLOCKS_DIFFER)
    ids = clock.first_id(lowest), clock.first_id(until + CLOCKS_DIFFER)
    rows = Event.objects.filter(
        Q(written_at__gt=place.at) | Q(pk__gt=place.last),
        Q(created_at__gte=place.since) | Q(written_at__gte=place.began),
        merchant=merchant,
        written_at__gte=place.at,
        written_at__lt=until,
        pk__range=ids,
    )
    return rows.values_list(*_COLUMNS, named=True)


def _end_of_page(found: Sequence[Any], limit: int, place: Place, until: datetime) -> Place:
    """Return the end of a page: its last event, or for the last page the time before which no row changes."""
    if len(found) == limit:
        return place._replace(at=found[-1].written_at, last=found[-1].id)
    at, last = _place_before(until)
    return place._replace(at=at, last=last) if at > place.at else place


def _list_entries(found: Sequence[Any], *, sees_customers: bool) -> list[dict[str, Any]]:
    statuses = lookup.statuses_of([event.id for event in found])
    return [
        {"event": _body_for_reader(event, sees_customers), "delivery_status": statuses.get(event.id, "none")}
        for event in found
    ]


def _body_for_reader(event: Any, sees_customers: bool) -> bytes:
    """Return the bytes that are sent, without `data` if it is withheld or deleted."""
    if event.type in PERSONAL and (event.body_deleted_at or not sees_customers):
        return outbox.envelope(event.id, event.type, event.created_at, None)
    return unseal(event.type, bytes(event.body))
