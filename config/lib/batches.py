"""Functions that process many rows in small steps. Each step has its own transaction, so no transaction is long."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet

ROWS = 1000
BATCHES = 2000  # the maximum number of steps in one run; the next run continues
T = TypeVar("T")
M = TypeVar("M", bound=Model)


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of at most `size`."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


def iterate(rows: QuerySet[M]) -> Iterator[M]:
    """Yield the rows in the order of their keys. Each statement reads a thousand rows.

    No database cursor stays open between two statements, so the caller may write and commit.
    """
    ordered = rows.order_by("pk")
    found = list(ordered[:ROWS])
    while found:
        yield from found
        found = list(ordered.filter(pk__gt=found[-1].pk)[:ROWS])


def repeat(step: Callable[[int], int], *, rows: int = ROWS) -> int:
    """Run `step` repeatedly, each time in its own transaction. Return the total number of processed rows.

    `step` gets the maximum number of rows to process, and returns how many it has processed. The loop ends
    when this number is below the maximum, or after BATCHES steps.
    """
    total = 0
    for _ in range(BATCHES):
        with transaction.atomic(durable=True):
            done = step(rows)
        total += done
        if done < rows:
            break
    return total


def delete(old: QuerySet[Any]) -> int:
    """Delete the rows in small steps; return how many were deleted."""
    return repeat(lambda rows: _run_batch(old, rows, lambda found: found.delete()))


def update(old: QuerySet[Any], **values: Any) -> int:
    """Update the rows in small steps; return how many were updated.

    After its update, a row must no longer match `old`.
    """
    return repeat(lambda rows: _run_batch(old, rows, lambda found: found.update(**values)))


def _run_batch(old: QuerySet[Any], rows: int, process: Callable[[QuerySet[Any]], object]) -> int:
    keys = list(old.values_list("pk", flat=True)[:rows])
    process(old.model._base_manager.filter(pk__in=keys))
    return len(keys)
