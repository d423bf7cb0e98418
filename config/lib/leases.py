"""Leases: a process takes a due row for a limited time. If the process dies, the row becomes due again."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet
from django.db.models.functions import Now

from config.lib.process import liveness

M = TypeVar("M", bound=Model)


class Queue(Generic[M]):
    """The rows of a queryset that are due. `due` names the field with the time from which a row is due.

    `rows` builds the queryset. It is called only when the queue is used, so it can use models that are not
    loaded yet. `by` names the field that decides the order in which rows are taken, by default the same
    field.
    """

    def __init__(self, rows: Callable[[], QuerySet[M]], due: str, *, by: str = "") -> None:
        def waiting() -> QuerySet[M]:
            return rows().filter(**{f"{due}__lte": Now()})

        def oldest() -> Any:  # the rows with `locked_at`
            rows = waiting().order_by(by or due).annotate(locked_at=Now())
            return rows.select_for_update(of=("self",), no_key=True, skip_locked=True)

        self._waiting = waiting
        self._oldest = oldest

    def take_oldest(self, changed: Callable[[M, datetime], Mapping[str, Any]]) -> M | None:
        """Take the first due row and return it, or None if no row is due.

        `changed` gets the row and the current time. It returns the new values of the fields that mark the row
        as taken, such as the time at which the row is due again. The new values are committed at once, in a
        separate transaction, so that no other process takes the same row.
        """
        liveness.record_sign()
        # Usually no row is due, and this check then saves two statements.
        if not self._waiting().exists():
            return None
        with transaction.atomic(durable=True):
            row: Any = self._oldest().first()
            if row is not None:
                changes = changed(row, row.locked_at)
                for name, value in changes.items():
                    setattr(row, name, value)
                row.save(update_fields=changes)
        return row  # type: ignore[no-any-return]  # a row of the given model
