"""Queries that the ORM builds once and PostgreSQL plans once.

A short query takes longer to build and plan than to run. Rule api.statements.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection, models
from django.db.backends.signals import connection_created
from django.db.models import Model, QuerySet
from django.db.models.query import RelatedPopulator, get_related_populators
from django.utils.functional import cached_property

M = TypeVar("M", bound=Model)
Value = UUID | str | datetime
_MARKS: dict[type, Callable[[int], Any]] = {
    UUID: lambda place: UUID(int=place),
    str: lambda place: f"the value at {place}",
    datetime: lambda place: datetime(1, 1, place, tzinfo=UTC),
}
# An argument for newer Django versions. With it, a related object that the query does not join is read at its
# first use.
_FETCH_MODE = [models.FETCH_ONE] if hasattr(models, "FETCH_ONE") else []
MAX_PLANS = 500  # per connection; one order needs more statements than psycopg's default of 100


def _raise_limit(connection: Any, **_: Any) -> None:
    connection.connection.prepared_max = MAX_PLANS


connection_created.connect(_raise_limit)


# PostgreSQL runs a materialized query before the query that reads it. The time is therefore read after the
# rows are locked.
_WITH_READ_TIME = "WITH found AS MATERIALIZED ({query}) SELECT found.*, clock_timestamp() FROM found"


class _Plan(NamedTuple):
    """A query as Django's compiler made it: its SQL, and the way in which a row becomes an object."""

    sql: str
    parameters: tuple[tuple[int | None, Any], ...]  # each one is the index of a value, or a constant
    model: Any
    columns: slice
    names: list[str]
    related: list[RelatedPopulator]
    annotations: list[tuple[str, int]]
    convert: Callable[[tuple[Any, ...]], Any]


class Prepared(Generic[M]):
    """A query whose SQL is the same for all values of its parameters.

    `build` makes the queryset from values of the given kinds (UUID, str or datetime). The queryset may use
    each value only as an SQL parameter. `build` runs once, at the first use, so it can name models that are
    not loaded yet.
    """

    def __init__(
        self, build: Callable[..., QuerySet[M, Any]], *kinds: type, read_at: str | None = None
    ) -> None:
        """Set up the query without building it.

        If `read_at` is given, each object gets an attribute with this name. Its value is the database's time
        after the object's row was locked.
        """
        self._build, self._read_at = build, read_at
        self._marks = [_MARKS[kind](place) for place, kind in enumerate(kinds, start=1)]

    def first(self, *values: Value) -> M | None:
        """Return the first object, as the queryset would. None if there is no row."""
        with self._executed(values) as cursor:
            row = cursor.fetchone()
        return None if row is None else self._made(self._plan, self._plan.convert(row))

    def all(self, *values: Value) -> list[M]:
        """Return all objects, as the queryset would."""
        with self._executed(values) as cursor:
            rows = cursor.fetchall()
        return [self._made(self._plan, self._plan.convert(row)) for row in rows]

    def get(self, *values: Value) -> M:
        """Return the first object. Raises the model's DoesNotExist."""
        found = self.first(*values)
        if found is None:
            raise self._plan.model.DoesNotExist
        return found

    @contextlib.contextmanager
    def _executed(self, values: Sequence[Value]) -> Iterator[Any]:
        sql, places = self._plan.sql, self._plan.parameters
        with connection.cursor() as cursor:
            cursor.execute(sql, [constant if place is None else values[place] for place, constant in places])
            yield cursor

    def _made(self, plan: _Plan, row: Any) -> Any:
        made = plan.model.from_db(DEFAULT_DB_ALIAS, plan.names, row[plan.columns])
        for populator in plan.related:
            populator.populate(row, made)
        for name, place in plan.annotations:
            setattr(made, name, row[place])
        return made

    def _parameter(self, value: Any) -> tuple[int | None, Any]:
        """Return the index of the argument that has this value, or the value itself if it is a constant."""
        return (self._marks.index(value), None) if value in self._marks else (None, value)

    @cached_property
    def _plan(self) -> _Plan:
        compiler = self._build(*self._marks).query.get_compiler(DEFAULT_DB_ALIAS)
        sql, parameters = compiler.as_sql()
        if missing := [mark for mark in self._marks if mark not in parameters]:
            raise ValueError(f"The query's text depends on {missing}.")
        own = compiler.klass_info["select_fields"]
        columns = slice(own[0], own[-1] + 1)
        converters = compiler.get_converters([column for column, *_ in compiler.select])

        def convert(row: tuple[Any, ...]) -> Any:
            return next(iter(compiler.apply_converters([row], converters))) if converters else row

        return _Plan(
            _WITH_READ_TIME.replace("{query}", sql) if self._read_at else sql,
            tuple(self._parameter(value) for value in parameters),
            compiler.klass_info["model"],
            columns,
            [column.target.attname for column, *_ in compiler.select[columns]],
            get_related_populators(compiler.klass_info, compiler.select, DEFAULT_DB_ALIAS, *_FETCH_MODE),
            [*compiler.annotation_col_map.items(), *([(self._read_at, -1)] if self._read_at else [])],
            convert,
        )
