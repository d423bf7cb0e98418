"""Events, deliveries and attempts found by what they are about, in the partitions of their time alone.

Each takes ids, not a query: PostgreSQL leaves out the other partitions only when it plans with the ids themselves.
"""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet, Value
from psycopg.sql import quote

from config.lib.database import partitions
from webhooks.models import Attempt, Delivery, Event, EventType


class OfType(Value):
    """A type of event to filter by, which stands in the text of the statement.

    A plan that is kept for any type does not take the indexes that only seldom types are in.
    """

    def __init__(self, event_type: str) -> None:
        """Raise ValueError if it is no type of ours."""
        super().__init__(EventType(event_type).value)

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[str | int, ...]]:
        return quote(self.value), ()


def events_about(*checkout_uuids: UUID) -> QuerySet[Event]:
    """Return the events of these checkouts; none is older than its checkout."""
    told = partitions.told_of(*checkout_uuids)
    return Event.objects.filter(checkout_uuid__in=checkout_uuids, pk__range=told)


def deliveries_of(event_uuids: Collection[UUID]) -> QuerySet[Delivery]:
    """Return the deliveries of these events."""
    if not event_uuids:
        return Delivery.objects.none()
    return Delivery.objects.filter(event__in=event_uuids, pk__range=partitions.beside(*event_uuids))


def statuses_of(event_uuids: Collection[UUID]) -> dict[UUID, str]:
    """Return the status of the delivery of each of these events that has one."""
    if not event_uuids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_STATUSES, [list(event_uuids), *partitions.beside(*event_uuids)])
        return dict(cursor.fetchall())


# Plain SQL: the ORM would build a text anew for each number of events, which costs more than all that is read.
_STATUSES = "SELECT event_id, status FROM webhooks_delivery WHERE event_id = ANY(%s) AND id BETWEEN %s AND %s"


def attempts_of(event_uuids: Collection[UUID]) -> QuerySet[Attempt]:
    """Return the attempts to deliver these events."""
    return attempts_under(list(deliveries_of(event_uuids).values_list("pk", flat=True)))


def attempts_under(delivery_uuids: Collection[UUID]) -> QuerySet[Attempt]:
    """Return the attempts of these deliveries."""
    if not delivery_uuids:
        return Attempt.objects.none()
    return Attempt.objects.filter(delivery__in=delivery_uuids, pk__range=partitions.beside(*delivery_uuids))


def ended_as(*, is_delivered: bool) -> Q:
    """Return the condition of attempts that ended so. One that failed says why, by which an index finds it."""
    return Q(is_delivered=True) if is_delivered else Q(is_delivered=False, error_message__isnull=False)


def attempts_about(checkout_uuid: UUID) -> QuerySet[Attempt]:
    """Return the attempts to deliver a checkout's events."""
    return attempts_of(list(events_about(checkout_uuid).values_list("pk", flat=True)))
