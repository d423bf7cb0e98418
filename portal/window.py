"""A window on rows, for keyset pages: the newest so many of those before a moment."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Window:
    """The newest `maximum` rows, or the newest before a moment."""

    before: datetime | None
    maximum: int

    def of(self, rows: QuerySet[Row, Any], key: str = "created_at") -> list[Row]:
        """Return the window's rows, newest first by the column `key`."""
        if self.before is not None:
            rows = rows.filter(**{f"{key}__lt": self.before})
        return list(rows.order_by(f"-{key}", "-pk")[: self.maximum])
