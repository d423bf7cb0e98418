"""Functions that run raw SQL. The SQL texts are in the `statements` module of each package."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

Parameters = Sequence[Any] | Mapping[str, Any]


def rows(
    statement: str, parameters: Parameters | None = None, *, using: str = DEFAULT_DB_ALIAS
) -> list[tuple[Any, ...]]:
    """Run a statement and return all its rows."""
    with connections[using].cursor() as cursor:
        cursor.execute(statement, parameters)
        fetched: list[tuple[Any, ...]] = cursor.fetchall()
    return fetched


def named_rows(statement: str, parameters: Parameters | None = None) -> list[dict[str, Any]]:
    """Run a statement and return its rows as dictionaries, by the names of the columns."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(statement, parameters)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def row(statement: str, parameters: Parameters | None = None, *, using: str = DEFAULT_DB_ALIAS) -> Any:
    """Run a statement and return its first row as a tuple, or None if it has no row."""
    with connections[using].cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchone()


def value(statement: str, parameters: Parameters | None = None, *, using: str = DEFAULT_DB_ALIAS) -> Any:
    """Run a statement that has at least one row, and return the first column of the first row."""
    return row(statement, parameters, using=using)[0]


def execute(statement: str, parameters: Parameters | None = None, *, using: str = DEFAULT_DB_ALIAS) -> int:
    """Run a statement and return how many rows it changed or returned."""
    with connections[using].cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)
