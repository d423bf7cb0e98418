"""A window on rows: so many of those before a moment, newest first, however many there are."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Window:
    """`most` rows before a moment; before none, the newest."""

    before: datetime | None
    maximum: int

    def of(self, rows: QuerySet[Row, Any], key: str = "created_at") -> list[Row]:
        """Return the rows of the window by the time that `key` names."""
        if self.before is not None:
            rows = rows.filter(**{f"{key}__lt": self.before})
        return list(rows.order_by(f"-{key}", "-pk")[: self.maximum])
