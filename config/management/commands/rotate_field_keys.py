"""`manage.py rotate_field_keys`: encrypts again, under the newest field key, all that older ones encrypted.

Rule secret.keys.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from allauth.mfa.models import Authenticator
from cryptography.fernet import InvalidToken
from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction
from django.db.models import Field, Model

from config.lib import crypto
from portal.models import OutboundEmail
from webhooks.models import PERSONAL, Event

ROWS = 1000
READ = "SELECT {key}, {sealed} FROM {table} WHERE {rows} AND {key} > %s ORDER BY {key} LIMIT {limit}"
READ_FIRST = READ.replace("AND {key} > %s ", "")
WRITE = "UPDATE {table} SET {column} = {new} WHERE {key} = %s AND {sealed} = %s"


class Place(NamedTuple):
    """A column with something encrypted: how it is read and written as text, and in which rows."""

    model: type[Model]
    column: str
    sealed: str
    new: str = "%s"
    rows: str = "true"

    def statement(self, template: str) -> str:
        meta = self.model._meta
        key = meta.pk.column if meta.pk else ""
        return template.format(table=meta.db_table, key=key, limit=ROWS, **self._asdict())


class Command(BaseCommand):
    help = "Encrypt everything anew under the first of FIELD_KEYS; the others may go then."

    def handle(self, *args: Any, **options: Any) -> None:
        missed = 0
        for place in _places():
            found = written = 0
            for anew in _batches(place):
                found, written = found + len(anew), written + _write(place, anew)
            missed += found - written
            self.stdout.write(f"{place.statement('{table}.{column}')}: {written} encrypted anew")
        if missed:
            raise CommandError(f"{missed} rows were changed meanwhile. Run it again.")
        self.stdout.write(
            "All is under the first key. The others may go in 12 hours, when no session needs them."
        )


def _places() -> Iterator[Place]:
    """Yield all columns where something is kept encrypted for longer than a session lives."""
    for model in apps.get_models():
        for field in model._meta.local_fields:
            yield from _in_field(model, field)
    types = ", ".join(f"'{event_type}'" for event_type in sorted(PERSONAL))
    yield Place(
        Event,
        "body",
        "convert_from(body, 'UTF8')",
        "convert_to(%s, 'UTF8')",
        f"body_deleted_at IS NULL AND type IN ({types})",
    )
    for model, column, name in (
        (Authenticator, "data", "secret"),
        (Authenticator, "data", "seed"),
        (OutboundEmail, "facts", "link"),
    ):
        new = f"jsonb_set({column}, '{{{name}}}', to_jsonb(%s::text))"
        yield Place(model, column, f"{column} ->> '{name}'", new, f"{column} ->> '{name}' IS NOT NULL")


def _in_field(model: type[Model], field: "Field[Any, Any]") -> Iterator[Place]:
    name, after = field.attname, crypto.DIGEST_LETTERS
    if isinstance(field, crypto.FindableTextField):
        sealed, new = f"substr({name}, {after + 1})", f"left({name}, {after}) || %s"
        yield Place(model, name, sealed, new, f"{name} <> ''")
    elif isinstance(field, crypto.EncryptedTextField):
        yield Place(model, name, name, rows=f"{name} IS NOT NULL")


def _batches(place: Place) -> Iterator[list[tuple[str, Any, str]]]:
    """Yield what is not under the first key yet: the new value, its row's key, the old value."""
    statement = place.statement(READ_FIRST)
    after: list[Any] = []
    while True:
        with connection.cursor() as cursor:
            cursor.execute(statement, after)
            found = cursor.fetchall()
        if not found:
            return
        yield [(_anew(place, key, old), key, old) for key, old in found if not crypto.is_under_first_key(old)]
        statement, after = place.statement(READ), [found[-1][0]]


def _anew(place: Place, key: Any, old: str) -> str:
    try:
        return crypto.rotate(old)
    except InvalidToken:
        where = place.statement("{table}.{column}")
        raise CommandError(f"None of FIELD_KEYS opens {where} of {key}. Add the key that does.") from None


def _write(place: Place, anew: list[tuple[str, Any, str]]) -> int:
    """Write the values that nobody has changed meanwhile; return how many there were."""
    with transaction.atomic(), connection.cursor() as cursor:
        written = 0
        for row in anew:
            cursor.execute(place.statement(WRITE), row)
            written += cursor.rowcount
    return written
