"""Leases: who takes a due row has it for a time. If its taker dies, the row is due again when that time is over."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet
from django.db.models.functions import Now

from config.lib.prepared import Prepared
from config.lib.process import liveness

M = TypeVar("M", bound=Model)


class Queue(Generic[M]):
    """The rows of a queryset that are due by a field; `rows` makes it, once, at the first use.

    They are taken in the order of `by`, which is `due` if nothing else is said.
    """

    def __init__(self, rows: Callable[[], QuerySet[M]], due: str, *, by: str = "") -> None:
        def waiting() -> QuerySet[M]:
            return rows().filter(**{f"{due}__lte": Now()})

        def oldest() -> QuerySet[M]:
            return waiting().order_by(by or due).select_for_update(of=("self",), skip_locked=True)[:1]

        self._any = Prepared(lambda: waiting().select_related(None).only("pk")[:1])
        self._oldest = Prepared(oldest, read_at="locked_at")

    def take_oldest(self, changed: Callable[[M, datetime], Mapping[str, Any]]) -> M | None:
        """Take the first of the rows that are due, and return it; None where none is.

        `changed` gets the row and the time, and returns the fields that say that it is taken: when it is due again,
        if ever. They are committed at once, in a transaction of its own, so that no other process takes the same row.
        """
        liveness.sign()
        if self._any.first() is None:  # as nearly always: one statement instead of three
            return None
        with transaction.atomic(durable=True):
            row: Any = self._oldest.first()
            if row is not None:
                changes = changed(row, row.locked_at)
                for name, value in changes.items():
                    setattr(row, name, value)
                row.save(update_fields=changes)
        return row  # type: ignore[no-any-return]  # of the model given
