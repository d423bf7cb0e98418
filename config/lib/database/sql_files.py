"""Installs an app's SQL files. They define the database objects that Django's models cannot describe."""

from pathlib import Path

from django.db import migrations


def install(migration: Path, *names: str, folder: str = "sql") -> migrations.RunSQL:
    """Return a migration operation that runs these files from the app's folder `sql`, in this order.

    `migration` is the path of the migration's module. If the folder has a file `uninstall.sql`, reversing the
    operation runs it. A released file never changes. A later migration therefore has its own folder, such as
    "sql/0009_capture_guard", with the new definition of each object that it replaces.
    """
    files = migration.parents[1] / folder
    undo = files / "uninstall.sql"
    return migrations.RunSQL(
        "\n".join((files / f"{name}.sql").read_text() for name in names),
        undo.read_text() if undo.exists() else migrations.RunSQL.noop,
    )
