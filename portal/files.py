"""CSV downloads, streamed a thousand rows at a time, and safe to open in a spreadsheet (rule portal.csv)."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.db.models import Q, QuerySet
from django.http import StreamingHttpResponse

from config.lib.database import replica
from portal import last_writes
from portal.models import Membership

BATCH = 1000
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
DANGEROUS = tuple("=+-@|%\t\r\n＝＋－＠")


class _Echo:
    """A file whose `write` returns the line. The `writerow` of csv.writer then returns it too."""

    def write(self, line: str) -> str:
        return line


@dataclass(frozen=True)
class Source:
    """The content of a file: its rows, and a function that turns rows into lines.

    The rows are written in the order of `key`, newest first.
    """

    rows: QuerySet[Any]
    lines: Callable[[list[Any]], Iterable[Sequence[Any]]]
    key: str = "created_at"


def csv_response(
    membership: Membership, name: str, heading: Sequence[str], source: Source
) -> StreamingHttpResponse:
    """Return a streamed CSV file with this name.

    The rows are read while the file is sent. Each part is read from the replica if the replica has the
    changes that the merchant's people made before the request.
    """
    first_line = "\ufeff" + csv_lines([heading])  # the mark makes spreadsheets read the file as UTF-8
    parts = _yield_parts(source, since=last_writes.stored_position(membership.merchant_id))
    response = StreamingHttpResponse(chain([first_line], parts), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def csv_lines(rows: Iterable[Sequence[Any]]) -> str:
    """Return the rows as lines of CSV."""
    # All cells are quoted, because some spreadsheets also split lines at semicolons.
    writer = csv.writer(_Echo(), quoting=csv.QUOTE_ALL)
    return "".join(writer.writerow([escape_cell(value) for value in row]) for row in rows)


def _yield_parts(source: Source, *, since: int) -> Iterator[str]:
    """Yield the file in parts of BATCH rows.

    Each query continues after the last row of the previous part. This avoids a long transaction and a growing
    offset.
    """
    key, ordered = source.key, source.rows.order_by(f"-{source.key}", "-pk")
    rows = ordered

    def read() -> tuple[Any, str]:
        page = list(rows[:BATCH])
        return page[-1] if len(page) == BATCH else None, csv_lines(source.lines(page))

    while True:
        last, text = replica.read_on_replica(read, since=lambda: since)
        yield text
        if last is None:
            return
        at = getattr(last, key)
        rows = ordered.filter(Q(**{f"{key}__lt": at}) | Q(pk__lt=last.pk), **{f"{key}__lte": at})


def escape_cell(value: Any) -> Any:
    """Return the text of a cell. If a spreadsheet would run the text as a formula, put a quote before it."""
    if value is None:
        return ""
    if (
        isinstance(value, str)
        and value.lstrip(" \0\ufeff").startswith(DANGEROUS)
        and not NUMBER.fullmatch(value)
    ):
        return f"'{value}"
    return value
