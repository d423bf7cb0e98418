"""The command `manage.py rotate_keys`, which rewrites every value that needs a former key.

The former keys are all keys in FIELD_KEYS except the first, and all keys in LOOKUP_KEY_FALLBACKS. The command
can run while the service runs. It commits each batch, and skips values that already use the current keys. It
can therefore be stopped and started again. Rule secret.keys.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from allauth.mfa.models import Authenticator
from cryptography.fernet import InvalidToken
from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.db import IntegrityError, transaction
from django.db.models import Field, Model

from config import statements
from config.lib import crypto
from config.lib.crypto import DIGEST_LETTERS
from config.lib.database import queries
from hosted_page.models import OptIn
from hosted_page.opt_in import consent
from hosted_page.sms import stopped_numbers
from portal import key_check
from portal.models import OutboundEmail
from webhooks.models import PERSONAL, Event

ROWS = 1000
PROGRESS_EVERY = 100_000  # rows


def _reencrypt(sealed: str) -> str:
    return sealed if crypto.is_under_first_key(sealed) else crypto.rotate(sealed)


def _renew_number(stored: str) -> str:
    """Return a FindableTextField's value, digested and encrypted with the current keys."""
    sealed = stored[DIGEST_LETTERS:]
    return crypto.FindableTextField.digest(crypto.decrypt(sealed)) + _reencrypt(sealed)


def _renew_opt_in(stored: str) -> str:
    """Return the digest of an email address under the current key, followed by the unchanged ciphertext."""
    sealed = stored[DIGEST_LETTERS:]
    return consent.email_digests(crypto.decrypt(sealed))[0] + sealed


class EncryptedColumn(NamedTuple):
    """A column whose values are encrypted or digested with a key.

    `old` and `new` are the SQL expressions that read and write the column as text. `rows` is the condition
    that selects the rows to rewrite. The function `renew` rewrites a value.
    """

    model: type[Model]
    column: str
    old: str
    new: str = "%s"
    rows: str = "true"
    write: str = statements.WRITE_ENCRYPTED
    renew: Callable[[str], str] = _reencrypt

    def statement(self, template: str) -> str:
        meta = self.model._meta
        key = meta.pk.column if meta.pk else ""
        named = {"table": meta.db_table, "key": key, "limit": ROWS, "letters": DIGEST_LETTERS}
        return template.format(**named, **self._asdict())


class Change(NamedTuple):
    """A value that must be rewritten: its new form, the primary key of its row, and its old form."""

    new: str
    row: Any
    old: str


class Command(BaseCommand):
    help = "Rewrite all values that need a former key with the first of FIELD_KEYS and with LOOKUP_KEY."

    def handle(self, *args: Any, **options: Any) -> None:
        missed = 0
        conflicts: list[str] = []
        for place in _places():
            missed += self._rotate(place, conflicts)
        for conflict in conflicts:
            self.stderr.write(conflict)
        if conflicts:
            raise CommandError(
                f"{len(conflicts)} rows need a former LOOKUP_KEY. Keep it in LOOKUP_KEY_FALLBACKS."
            )
        if missed:
            raise CommandError(f"{missed} rows were changed at the same time. Run it again.")
        key_check.rewrite_canary()
        self.stdout.write(
            "All rows use the current keys. docs/operate.md says when you can remove the former keys."
        )
        if count := stopped_numbers.count_under_former_keys():
            self.stdout.write(
                f"{count} numbers that have stopped texts are found only with a former LOOKUP_KEY. Keep it in"
                " LOOKUP_KEY_FALLBACKS, or these numbers get texts again."
            )

    def _rotate(self, place: EncryptedColumn, conflicts: list[str]) -> int:
        """Rewrite a column; return how many values were not written because they had changed since they were read."""
        name = place.statement("{table}.{column}")
        read = found = written = 0
        for rows, changes in _batches(place):
            if (read + rows) // PROGRESS_EVERY > read // PROGRESS_EVERY:
                self.stdout.write(f"{name}: {read + rows} read")
            refused = list[str]()
            written += _write(place, changes, refused)
            read, found = read + rows, found + len(changes) - len(refused)
            conflicts += refused
        self.stdout.write(f"{name}: {written} rewritten")
        return found - written


def _places() -> Iterator[EncryptedColumn]:
    """Yield all columns whose values need a key, except the session columns, because sessions expire soon."""
    for model in apps.get_models():
        for field in model._meta.local_fields:
            yield from _in_field(model, field)
    opt_in = {"old": "email_digest || email", "rows": "email_digest <> ''", "write": statements.WRITE_OPT_IN}
    yield EncryptedColumn(OptIn, "email_digest", **opt_in, renew=_renew_opt_in)
    types = ", ".join(f"'{event_type}'" for event_type in sorted(PERSONAL))
    yield EncryptedColumn(
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
        yield EncryptedColumn(
            model, column, f"{column} ->> '{name}'", new, f"{column} ->> '{name}' IS NOT NULL"
        )


def _in_field(model: type[Model], field: "Field[Any, Any]") -> Iterator[EncryptedColumn]:
    name = field.attname
    if isinstance(field, crypto.FindableTextField):
        yield EncryptedColumn(model, name, name, rows=f"{name} <> ''", renew=_renew_number)
    elif isinstance(field, crypto.EncryptedTextField):
        yield EncryptedColumn(model, name, name, rows=f"{name} IS NOT NULL")


def _batches(place: EncryptedColumn) -> Iterator[tuple[int, list[Change]]]:
    """For each batch, yield how many rows were read, and the changes to values that need a former key."""
    statement = place.statement(statements.READ_FIRST_ENCRYPTED)
    last_key: list[Any] = []
    while True:
        found = queries.rows(statement, last_key)
        if not found:
            return
        changes = [Change(_renew_value(place, row, old), row, old) for row, old in found]
        yield len(found), [change for change in changes if change.new != change.old]
        statement, last_key = place.statement(statements.READ_ENCRYPTED), [found[-1][0]]


def _renew_value(place: EncryptedColumn, row: Any, old: str) -> str:
    try:
        return place.renew(old)
    except InvalidToken:
        where = place.statement("{table}.{column}")
        raise CommandError(
            f"No key in FIELD_KEYS can decrypt {where} of row {row}. Add the key that can."
        ) from None


def _write(place: EncryptedColumn, changes: list[Change], refused: list[str]) -> int:
    """Write the values that have not changed since they were read, and return how many were written.

    For each value that violates a unique constraint, add a sentence to `refused`.
    """
    try:
        return _write_all(place, changes)
    except IntegrityError:
        if len(changes) == 1:
            refused.append(_conflict(place, changes[0]))
            return 0
        return sum(_write(place, [change], refused) for change in changes)


def _write_all(place: EncryptedColumn, changes: list[Change]) -> int:
    with transaction.atomic(durable=True):
        return sum(queries.execute(place.statement(place.write), change) for change in changes)


def _conflict(place: EncryptedColumn, change: Change) -> str:
    found = queries.rows(place.statement(statements.FIND_SAME_DIGEST), [change.new])
    others = ", ".join(str(row) for (row,) in found)
    where = place.statement("{table}.{column}")
    return f"{where}: {change.row} and {others} have the same value, digested with two keys."
