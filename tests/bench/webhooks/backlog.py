"""Creates merchants with subscriptions, and backlogs of deliveries that are all due at the same time."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from django.db import connection, transaction
from django.db.models import Model
from uuid_utils.compat import uuid7

from config.lib import clock, wakeup
from payments.models import Merchant
from tests import factories
from tests.bench.webhooks import emitter
from tests.bench.webhooks.processes import Worker
from webhooks import subscriptions
from webhooks.models import Delivery, Event, EventType

BATCH = 2000
Row = TypeVar("Row", bound=Model)


class Pattern(NamedTuple):
    """An event and its delivery, as the service writes them. A backlog consists of copies of these rows."""

    event: Event
    delivery: Delivery


def subscribe(addresses: Sequence[str], name: str = "Acme Tickets") -> list[Merchant]:
    """For each address, return a merchant that is subscribed to all events."""
    merchants = [Merchant.objects.create(name=name) for _ in addresses]
    for merchant, url in zip(merchants, addresses, strict=True):
        factories.subscribe(merchant, url=url, event_types=["*"])
    return merchants


def retire(merchants: Sequence[Merchant]) -> None:
    """End the merchants' subscriptions, so that retries do not disturb the next measurement."""
    for merchant in merchants:
        subscriptions.end(merchant)


def emit_once(merchants: Sequence[Merchant], event_type: EventType = EventType.VOIDED) -> None:
    """Emit one event for each merchant, so that the worker opens a connection to each endpoint."""
    for merchant in merchants:
        with transaction.atomic():
            emitter.emit(merchant, event_type)


def fill(merchants: Sequence[Merchant], count: int, types: Sequence[EventType] = (EventType.VOIDED,)) -> None:
    """Write `count` deliveries that are due now, for the merchants in turn. Wake the workers."""
    with transaction.atomic():
        patterns = [_pattern(merchant, event_type) for event_type in types for merchant in merchants]
        copies = (_copy(patterns[number % len(patterns)]) for number in range(count))
        while batch := list(islice(copies, BATCH)):
            Event.objects.bulk_create([pattern.event for pattern in batch])
            Delivery.objects.bulk_create([pattern.delivery for pattern in batch])
        # If the rows were added slowly, as in production, autovacuum would update the statistics. Here, the
        # bench must do it.
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE webhooks_event, webhooks_delivery")
        wakeup.wake_after_commit(subscriptions.DELIVER_DUE)


def await_end(worker: Worker, merchants: Sequence[Merchant], *, within: float = 60) -> None:
    """Wait until all deliveries of the merchants have ended and all results are recorded."""
    pending = Delivery.objects.filter(merchant__in=merchants, status=Delivery.Status.PENDING)
    worker.until(lambda: not pending.exists(), within=within, what="the record of the last delivery")


def _pattern(merchant: Merchant, event_type: EventType) -> Pattern:
    """Emit an event of this type and roll it back. Return its rows as a template for copies."""
    with transaction.atomic():
        event = Event.objects.get(pk=emitter.emit(merchant, event_type))
        pattern = Pattern(event, event.deliveries.get())
        transaction.set_rollback(True)
    return pattern


def _copy(pattern: Pattern) -> Pattern:
    event_id, known = uuid7(), str(pattern.event.pk).encode()
    body = bytes(pattern.event.body)
    if known not in body:
        raise ValueError("the body of an event no longer holds its id")
    event = _like(pattern.event, id=event_id, body=body.replace(known, str(event_id).encode()))
    return Pattern(event, _like(pattern.delivery, id=clock.new_id_of_same_time(event_id), event_id=event_id))


def _like(row: Row, **changes: object) -> Row:
    return type(row)(**(dict(_columns(row)) | changes))


def _columns(row: Model) -> Iterator[tuple[str, object]]:
    for column in row._meta.concrete_fields:
        if not column.generated:
            yield column.attname, getattr(row, column.attname)
