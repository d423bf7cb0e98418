"""Queries for events, deliveries and attempts that read only the partitions with the requested rows.

Each function takes ids, not a subquery, because PostgreSQL can skip the other partitions only if the query itself
contains the ids.
"""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet, Value
from psycopg.sql import quote

from config.lib.database import partitions, queries
from webhooks import statements
from webhooks.models import Attempt, Delivery, Event, EventType


class EventTypeValue(Value):
    """An event type in a filter. It is written into the SQL text, and not passed as a parameter.

    With a parameter, PostgreSQL can use one cached plan for all types. Such a plan does not use the partial indexes,
    which contain only rare types.
    """

    def __init__(self, event_type: str) -> None:
        """Check the type. Raises ValueError if it is unknown."""
        super().__init__(EventType(event_type).value)

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[str | int, ...]]:
        return quote(self.value), ()


def events_about(*checkout_uuids: UUID) -> QuerySet[Event]:
    """Return the events about these checkouts. Partitions that are older than the oldest checkout are not read."""
    id_range = partitions.ids_made_since(*checkout_uuids)
    return Event.objects.filter(checkout_uuid__in=checkout_uuids, pk__range=id_range)


def deliveries_of(event_uuids: Collection[UUID]) -> QuerySet[Delivery]:
    """Return the deliveries for these events."""
    if not event_uuids:
        return Delivery.objects.none()
    return Delivery.objects.filter(event__in=event_uuids, pk__range=partitions.id_range_of(*event_uuids))


def statuses_of(event_uuids: Collection[UUID]) -> dict[UUID, str]:
    """Map the id of each event that has a delivery to the status of this delivery."""
    if not event_uuids:
        return {}
    parameters = [list(event_uuids), *partitions.id_range_of(*event_uuids)]
    return dict(queries.rows(statements.READ_STATUSES, parameters))


def attempts_of(event_uuids: Collection[UUID]) -> QuerySet[Attempt]:
    """Return the attempts to deliver these events."""
    return attempts_of_deliveries(list(deliveries_of(event_uuids).values_list("pk", flat=True)))


def attempts_of_deliveries(delivery_uuids: Collection[UUID]) -> QuerySet[Attempt]:
    """Return the attempts of these deliveries."""
    if not delivery_uuids:
        return Attempt.objects.none()
    return Attempt.objects.filter(
        delivery__in=delivery_uuids, pk__range=partitions.id_range_of(*delivery_uuids)
    )


def result_condition(*, is_delivered: bool) -> Q:
    """Return the filter for delivered attempts or for failed attempts.

    A failed attempt always has an error message. The filter requires the message too, so that PostgreSQL can use the
    index on attempts with an error message.
    """
    return Q(is_delivered=True) if is_delivered else Q(is_delivered=False, error_message__isnull=False)


def attempts_about(checkout_uuid: UUID) -> QuerySet[Attempt]:
    """Return the attempts to deliver the events about a checkout."""
    return attempts_of(list(events_about(checkout_uuid).values_list("pk", flat=True)))
