"""Lists a merchant's events in the sequence in which they were written: the feed of events (rules events.*).

A merchant's backend reads the feed to get the events that it has missed.
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
from config.lib.database.partitions import MAX_CLOCK_DIFFERENCE
from payments.cause import caller_of
from payments.models import Merchant
from webhooks import lookup, outbox
from webhooks.api import responses, serializers
from webhooks.models import EVENTS, PERSONAL, Event, EventType, decrypt_if_personal

CUSTOMERS = "customers:read"  # the scope that shows personal data
# By default, the feed begins 24 hours ago. A reader can request up to 30 days.
DEFAULT_PERIOD, LONGEST_PERIOD = timedelta(hours=24), timedelta(days=30)
_COLUMNS = ("id", "type", "body", "body_deleted_at", "created_at", "written_at")


class FeedPosition(NamedTuple):
    """A reader's place in the feed, which is sorted by `written_at` and then by id.

    The next event is the first event after the time `at` and the id `last`. The reader gets the events that happened
    at `since` or later. An event that was written at `began` or later is also included if it happened before `since`.
    """

    at: datetime
    last: UUID
    since: datetime
    began: datetime


_POSITION_PARSERS = (datetime.fromisoformat, UUID, datetime.fromisoformat, datetime.fromisoformat)


class Events(ApiView):
    """Endpoint that lists the merchant's events, oldest first. It always returns a cursor for the next call."""

    scopes = {"GET": "webhooks:read"}
    queries = {"GET": serializers.EventsQuery}

    def get(self, request: Request) -> Response:
        caller, query = caller_of(request), self.query
        about = _parse_checkout_uuid(query.get("checkout_uuid"))
        scope = f"events:{caller.merchant.pk}:{query.get('type', '')}:{about or ''}"
        until = feed_horizon.horizon()
        place = _starting_position(query, scope, until)
        rows = _events_after(caller.merchant, place, until)
        rows = rows.filter(checkout_uuid=about) if about else rows
        kind = lookup.EventTypeValue(query.get("type", EventType.TEST))
        rows = rows.filter(type=kind) if "type" in query else rows.exclude(type=kind)
        events = list(rows.order_by("written_at", "pk")[: query["limit"]])
        listed = _list_entries(events, sees_customers=CUSTOMERS in caller.scopes)
        next_cursor = cursor.write_cursor(scope, *_end_of_page(events, query["limit"], place, until))
        page = responses.EventFeedOut.write({"events": listed, "next_cursor": next_cursor})
        return Response({"data": page})


def _parse_checkout_uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        raise drf.ValidationError({"checkout_uuid": ["Must be the id of a checkout, a UUID."]}) from None


def _starting_position(query: Mapping[str, Any], scope: str, until: datetime) -> FeedPosition:
    """Return the place after which this call reads.

    Raises ValidationError. Raises InvalidCursor if the cursor is invalid, or if `created_after` is not the same as in
    the call that returned the first cursor.
    """
    created_after: datetime | None = query.get("created_after")
    if "cursor" in query:
        place = FeedPosition(*cursor.read_cursor(query["cursor"], scope, *_POSITION_PARSERS))
        if created_after not in (None, place.since):
            raise cursor.InvalidCursor
        _check_events_kept(place, until)
        return place
    furthest = min(LONGEST_PERIOD, settings.WEBHOOK_RETENTION)
    if created_after and created_after < until - furthest:
        raise drf.ValidationError(
            {
                "created_after": [
                    f"Must be within the last {furthest.days} days, because older events are not in the feed."
                ]
            }
        )
    since = created_after or until - DEFAULT_PERIOD
    return FeedPosition(*_position_before(since - MAX_CLOCK_DIFFERENCE), since, began=max(since, until))


def _check_events_kept(place: FeedPosition, until: datetime) -> None:
    """Raise ValidationError if some of the events after this place were already deleted with their partition."""
    if place.at > until - partitions.YOUNGEST:
        # The events after this place are too recent to have been deleted.
        return
    kept_from = partitions.starts_at(EVENTS)
    if kept_from is not None and place.at < kept_from:
        remedy = "Start again with created_after, and compare your orders with GET checkouts."
        reason = f"Events between this cursor and {clock.iso(kept_from)} have been deleted. "
        raise drf.ValidationError({"cursor": [reason + remedy]})


def _position_before(at: datetime) -> tuple[datetime, UUID]:
    """Return a place that is before all events written at `at` or later."""
    return at, clock.first_id(at - MAX_CLOCK_DIFFERENCE)


def _events_after(merchant: Merchant, place: FeedPosition, until: datetime) -> QuerySet[Event, Any]:
    """Return the merchant's events that are after a place and were written before `until`.

    The range of ids does not change the result. It lets PostgreSQL skip the partitions of other days, because an id is
    made just before its row is written. All events that are older than the column `written_at` have the same value in
    this column, so they are sorted by id only.
    """
    lowest = min(clock.time_of_id(place.last), place.at - MAX_CLOCK_DIFFERENCE)
    ids = clock.first_id(lowest), clock.first_id(until + MAX_CLOCK_DIFFERENCE)
    rows = Event.objects.filter(
        Q(written_at__gt=place.at) | Q(pk__gt=place.last),
        Q(created_at__gte=place.since) | Q(written_at__gte=place.began),
        merchant=merchant,
        written_at__gte=place.at,
        written_at__lt=until,
        pk__range=ids,
    )
    return rows.values_list(*_COLUMNS, named=True)


def _end_of_page(events: Sequence[Any], limit: int, place: FeedPosition, until: datetime) -> FeedPosition:
    """Return the reader's place after this page.

    After a full page, it is the place of the last event. After a shorter page, all events that were written before
    `until` have been read, so it is the place just before `until`.
    """
    if len(events) == limit:
        return place._replace(at=events[-1].written_at, last=events[-1].id)
    at, last = _position_before(until)
    return place._replace(at=at, last=last) if at > place.at else place


def _list_entries(events: Sequence[Any], *, sees_customers: bool) -> list[dict[str, Any]]:
    statuses = lookup.statuses_of([event.id for event in events])
    return [
        {"event": _body_for_reader(event, sees_customers), "delivery_status": statuses.get(event.id, "none")}
        for event in events
    ]


def _body_for_reader(event: Any, sees_customers: bool) -> bytes:
    """Return the JSON of an event as it is sent.

    `data` is null if its personal data was deleted, or if the reader is not allowed to see personal data.
    """
    if event.type in PERSONAL and (event.body_deleted_at or not sees_customers):
        return outbox.build_envelope(event.id, event.type, event.created_at, None)
    return decrypt_if_personal(event.type, bytes(event.body))
