"""Leases: who takes a due row has it for a time. If its taker dies, the row is due again when that time is over."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet
from django.db.models.functions import Now

from config.lib import clock
from config.lib.process import liveness

M = TypeVar("M", bound=Model)


def take_oldest(rows: QuerySet[M], due: str, changed: Callable[[M, datetime], Mapping[str, Any]]) -> M | None:
    """Take the row that has been due longest by its field `due`, and return it; None where none is due.

    `changed` gets the row and the time, and returns the fields that say that it is taken: when it is due again, if
    ever. They are committed at once, in a transaction of its own, so that no other process takes the same row.
    """
    liveness.sign()
    if not rows.filter(**{f"{due}__lte": Now()}).exists():  # as nearly always: one statement instead of four
        return None
    with transaction.atomic(durable=True):
        now = clock.now()
        late = rows.filter(**{f"{due}__lte": now}).order_by(due)
        row = late.select_for_update(of=("self",), skip_locked=True).first()
        if row is not None:
            changes = changed(row, now)
            for name, value in changes.items():
                setattr(row, name, value)
            row.save(update_fields=changes)
    return row
