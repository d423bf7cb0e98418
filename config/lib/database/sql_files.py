"""Installs the SQL files of an app. They define the database objects that Django's models cannot describe."""

from pathlib import Path

from django.db import migrations


def install(migration: Path, *names: str) -> migrations.RunSQL:
    """Return the operation that runs these files of the app's folder `sql`, in this order.

    `migration` is the path of the migration's module. If the folder has a file `uninstall.sql`, reversing the
    operation runs it.
    """
    folder = migration.parents[1] / "sql"
    undo = folder / "uninstall.sql"
    return migrations.RunSQL(
        "\n".join((folder / f"{name}.sql").read_text() for name in names),
        undo.read_text() if undo.exists() else migrations.RunSQL.noop,
    )
