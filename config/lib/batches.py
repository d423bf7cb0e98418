"""Many rows in small steps: deletes and updates in transactions of their own, so that none locks or runs for long."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet

ROWS = 1000
BATCHES = 2000  # of one run; the next run goes on
T = TypeVar("T")
M = TypeVar("M", bound=Model)


def chunks(things: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the things, `size` at a time."""
    rest = iter(things)
    while chunk := list(islice(rest, size)):
        yield chunk


def each(rows: QuerySet[M]) -> Iterator[M]:
    """Yield the rows by their keys, a thousand read at a time: no cursor stays open, and whatever the caller writes."""
    ordered = rows.order_by("pk")
    found = list(ordered[:ROWS])
    while found:
        yield from found
        found = list(ordered.filter(pk__gt=found[-1].pk)[:ROWS])


def repeat(step: Callable[[int], int], *, rows: int = ROWS) -> int:
    """Run `step`, each time in a transaction of its own, until there is no more to do; return how many rows it did.

    `step` takes how many rows it may do, and returns how many it did.
    """
    total = 0
    for _ in range(BATCHES):
        with transaction.atomic():
            done = step(rows)
        total += done
        if done < rows:
            break
    return total


def delete(old: QuerySet[Any]) -> int:
    """Delete the rows; return how many there were."""
    return repeat(lambda rows: _step(old, rows, lambda found: found.delete()))


def update(old: QuerySet[Any], **values: Any) -> int:
    """Update the rows; return how many there were. Once updated, a row must no longer match `old`."""
    return repeat(lambda rows: _step(old, rows, lambda found: found.update(**values)))


def _step(old: QuerySet[Any], rows: int, act: Callable[[QuerySet[Any]], object]) -> int:
    keys = list(old.values_list("pk", flat=True)[:rows])
    act(old.model._default_manager.filter(pk__in=keys))
    return len(keys)
