"""Queries that are built once by the ORM and planned once by PostgreSQL: for a short one that costs more than the rest.

Rule api.statements.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Generic, NamedTuple, Self, TypeVar
from uuid import UUID

import orjson
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.signals import connection_created
from django.db.models import Model, QuerySet
from django.db.models.expressions import DatabaseDefault
from django.db.models.functions import Now
from django.db.models.query import RelatedPopulator, get_related_populators
from django.utils.functional import cached_property
from psycopg import Binary

M = TypeVar("M", bound=Model)
Value = UUID | str | datetime
_MARKS: dict[type, Callable[[int], Any]] = {
    UUID: lambda place: UUID(int=place),
    str: lambda place: f"the value at {place}",
    datetime: lambda place: datetime(1, 1, place, tzinfo=UTC),
}
MAX_PLANS = 500  # kept by a connection; psycopg's own 100 are fewer than an order needs from its first page to its end


def _raise_limit(connection: Any, **_: Any) -> None:
    connection.connection.prepared_max = MAX_PLANS


connection_created.connect(_raise_limit)


# One row: whether there was none and it was inserted, and what was found, else nulls.
_GET_OR_INSERT = """
WITH found AS MATERIALIZED ({query}),
    made AS ({insert} WHERE NOT EXISTS (SELECT FROM found) ON CONFLICT DO NOTHING RETURNING true)
SELECT EXISTS (SELECT FROM made), found.* FROM (SELECT) one LEFT JOIN found ON true LIMIT 1
"""
# The time is read from rows that are locked by then, since a materialized query comes before its reader.
_CLOCKED = "WITH found AS MATERIALIZED ({query}) SELECT found.*, clock_timestamp() FROM found"


class _Plan(NamedTuple):
    """What Django's compiler makes of a query: its SQL, and how a row becomes an object."""

    sql: str
    parameters: tuple[tuple[int | None, Any], ...]  # the place of a value, or a constant
    model: Any
    columns: slice
    names: list[str]
    related: list[RelatedPopulator]
    annotations: list[tuple[str, int]]
    convert: Callable[[tuple[Any, ...]], Any]


class Prepared(Generic[M]):
    """A query whose SQL is the same whatever its values are.

    `build` makes the queryset from values of the given kinds (UUID, str or datetime), each used as a value alone. It
    runs once, at the first use, so it may name models that are not loaded yet.
    """

    def __init__(
        self, build: Callable[..., QuerySet[M, Any]], *kinds: type, read_at: str | None = None
    ) -> None:
        """With `read_at` each row has the database's time in an attribute of that name, once it was locked."""
        self._build, self._read_at = build, read_at
        self._marks = [_MARKS[kind](place) for place, kind in enumerate(kinds, start=1)]

    def first(self, *values: Value) -> M | None:
        """Return the first row as the queryset would, or None."""
        with self._executed(values) as cursor:
            row = cursor.fetchone()
        return None if row is None else self._made(self._plan, self._plan.convert(row))

    def all(self, *values: Value) -> list[M]:
        """Return all rows as the queryset would."""
        with self._executed(values) as cursor:
            rows = cursor.fetchall()
        return [self._made(self._plan, self._plan.convert(row)) for row in rows]

    def get(self, *values: Value) -> M:
        """Return the first row. Raises the model's DoesNotExist."""
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
        """Return the argument's place that a mark stands for, or a value that is always the same."""
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
            _CLOCKED.replace("{query}", sql) if self._read_at else sql,
            tuple(self._parameter(value) for value in parameters),
            compiler.klass_info["model"],
            columns,
            [column.target.attname for column, *_ in compiler.select[columns]],
            # The stubs are of a newer Django, which takes one more argument.
            get_related_populators(compiler.klass_info, compiler.select, DEFAULT_DB_ALIAS),  # type: ignore[call-arg]
            [*compiler.annotation_col_map.items(), *([(self._read_at, -1)] if self._read_at else [])],
            convert,
        )

    def get_or_insert(self, *values: Value, row: PreparedModel) -> Any:
        """Return the first row, or the new one, inserted, if there is none and nobody else is first."""
        plan, (insert, saved) = self._plan, row.insertion()
        with connection.cursor() as cursor:
            parameters = [constant if place is None else values[place] for place, constant in plan.parameters]
            cursor.execute(_GET_OR_INSERT.format(query=plan.sql, insert=insert), [*parameters, *saved])
            inserted, *found = cursor.fetchone()
        if inserted:
            row._state.adding = False
            return row
        return self._made(plan, plan.convert(tuple(found))) if any(found) else self.get(*values)


class PreparedModel(Model):
    """A model whose `save` and `create` build each of their statements once; what they do is the same."""

    class Meta:
        abstract = True

    def insert_unless_there(self) -> bool:
        """Insert this new row, and return True; or False if there is one already that it would be the second of."""
        insert, parameters = self.insertion()
        with connection.cursor() as cursor:
            cursor.execute(f"{insert} ON CONFLICT DO NOTHING", parameters)
            self._state.adding = not cursor.rowcount
        return not self._state.adding

    def insertion(self) -> tuple[str, list[Any]]:
        """Return the statement that inserts this row, which may go on with WHERE or ON CONFLICT, and its parameters."""
        fields = tuple(field for field in self._meta.local_concrete_fields if not field.generated)
        database = connections[DEFAULT_DB_ALIAS]
        parameters = [_saved(field, field.pre_save(self, add=True), database) for field in fields]
        return _insert(self._meta.db_table, fields), parameters

    @classmethod
    def insert_all(cls, rows: Sequence[Self]) -> None:
        """Insert new rows by one statement, as `bulk_create` does; what no row has the database fills in.

        They are sent as one JSON text: the driver makes arrays of Python's, one for each column, at ten times the cost.
        """
        fields = tuple(
            field
            for field in cls._meta.local_concrete_fields
            if not (field.generated or _is_left_to_the_database(field, rows))
        )
        database = connections[DEFAULT_DB_ALIAS]
        sent = [
            {field.column: _saved(field, field.pre_save(row, add=True), database) for field in fields}
            for row in rows
        ]
        with connection.cursor() as cursor:
            cursor.execute(_insert_all(cls, fields), [orjson.dumps(sent, default=_unwrapped).decode()])
        for row in rows:
            row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS

    def _do_insert(self, manager: Any, using: str, fields: Any, returning_fields: Any, raw: bool) -> Any:
        database = connections[using]
        parameters = [
            _saved(field, getattr(self, field.attname) if raw else field.pre_save(self, add=True), database)
            for field in fields
        ]
        now = tuple(field for field, value in zip(fields, parameters, strict=True) if isinstance(value, Now))
        parameters = [value for value in parameters if not isinstance(value, Now)]
        if any(map(_is_expression, parameters)):
            # The stubs lack this method of Django's.
            return super()._do_insert(manager, using, fields, returning_fields, raw)  # type: ignore[misc]
        with database.cursor() as cursor:
            table = self._meta.db_table
            cursor.execute(_insert(table, tuple(fields), tuple(returning_fields), now), parameters)
            return cursor.fetchall() if returning_fields else []

    # The stubs are of a newer Django, which returns rows.
    def _do_update(self, base_qs: Any, using: str, pk_val: Any, values: Any, *how: Any) -> Any:  # type: ignore[override]
        database = connections[using]
        parameters = [_saved(field, value, database) for field, _, value in values]
        if not values or any(map(_is_expression, parameters)):
            return super()._do_update(base_qs, using, pk_val, values, *how)
        statement = _update(type(self), tuple(field for field, *_ in values))
        with database.cursor() as cursor:
            cursor.execute(statement, [*parameters, _saved(self._meta.pk, pk_val, database)])
            return bool(cursor.rowcount)


def _saved(field: Any, value: Any, database: Any) -> Any:
    return field.get_db_prep_save(value, connection=database)


def _is_left_to_the_database(field: Any, rows: Sequence[Model]) -> bool:
    return field.has_db_default() and all(
        isinstance(getattr(row, field.attname), DatabaseDefault) for row in rows
    )


def _unwrapped(value: Any) -> Any:
    """Return as JSON what a field has wrapped for the driver: JSON itself, or bytes."""
    return f"\\x{bytes(value.obj).hex()}" if isinstance(value, Binary) else value.obj


def _is_expression(value: Any) -> bool:
    return hasattr(value, "as_sql")


_INSERT = "INSERT INTO {table} ({columns}) SELECT {marks}{returning}"
_INSERT_ALL = (
    "INSERT INTO {table} ({columns}) SELECT {columns} FROM json_to_recordset(%s::json) AS sent ({kinds})"
)
_UPDATE = "UPDATE {table} SET {sets} WHERE {pk} = %s"


@cache
def _insert(
    table: str, fields: tuple[Any, ...], returning: tuple[Any, ...] = (), now: tuple[Any, ...] = ()
) -> str:
    return _INSERT.format(
        table=_quoted(table),
        columns=", ".join(map(_column, fields)),
        marks=", ".join("STATEMENT_TIMESTAMP()" if field in now else _mark(field) for field in fields),
        returning=f" RETURNING {', '.join(map(_column, returning))}" if returning else "",
    )


@cache
def _insert_all(model: type[Model], fields: tuple[Any, ...]) -> str:
    return _INSERT_ALL.format(
        table=_quoted(model._meta.db_table),
        columns=", ".join(map(_column, fields)),
        kinds=", ".join(f"{_column(field)} {field.db_type(connection)}" for field in fields),
    )


@cache
def _update(model: type[Model], fields: tuple[Any, ...]) -> str:
    sets = ", ".join(f"{_column(field)} = {_mark(field)}" for field in fields)
    return _UPDATE.format(table=_quoted(model._meta.db_table), sets=sets, pk=_column(model._meta.pk))


def _column(field: Any) -> str:
    return _quoted(field.column)


def _mark(field: Any) -> str:
    return str(field.get_placeholder(None, None, connection)) if hasattr(field, "get_placeholder") else "%s"


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
