"""Checks that the current migrations made the local database.

A migration can be rewritten until it is released. A database that was made by an earlier version of the
migration looks migrated, but lacks later additions. The comment of the table django_migrations therefore
stores the digest that each migration had when it was applied.
"""

import hashlib
import json
import sys
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations import RunSQL
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from config import statements
from config.lib.database import queries
from config.local import CannotStart

Digests = dict[str, str]  # keyed by "app.name"


def migrate() -> None:
    """Migrate the database. Raises CannotStart if a migration was rewritten after it was applied."""
    known, here = _stored_digests(), _digests()
    remade = [name for name, digest in known.items() if here.get(name, digest) != digest]
    if remade:
        raise CannotStart(
            f"The database was made by an older {', '.join(remade)}."
            " Remove the folder .local, or empty the database of your own, and run again."
        )
    before = {f"{app}.{name}" for app, name in MigrationLoader(connection).applied_migrations}
    call_command("migrate", verbosity=0)
    _store_digests(known | {name: digest for name, digest in here.items() if name not in before})


def _digests() -> Digests:
    """Return the digest of each of our migrations. It covers the module and the SQL files that the module installs."""
    found = {}
    for (app, name), migration in MigrationLoader(connection).disk_migrations.items():
        path = Path(sys.modules[migration.__module__].__file__ or "")
        if path.is_relative_to(settings.BASE_DIR) and "site-packages" not in path.parts:
            installed = [str(one.sql) for one in migration.operations if isinstance(one, RunSQL)]
            content = "\n".join([path.read_text(), *installed])
            found[f"{app}.{name}"] = hashlib.sha256(content.encode()).hexdigest()
    return found


def _stored_digests() -> Digests:
    digests: Digests = json.loads(queries.value(statements.READ_MIGRATION_DIGESTS) or "{}")
    return digests


def _store_digests(digests: Digests) -> None:
    words = sql.Literal(json.dumps(digests))  # the statement COMMENT accepts no parameters
    queries.execute(sql.SQL(statements.STORE_MIGRATION_DIGESTS).format(words).as_string())
