"""A migration installs the SQL files of its app, or the SQL files in its own folder."""

from pathlib import Path

import pytest
from django.db.migrations import RunSQL

from config.lib.database.sql_files import install


@pytest.fixture
def migration(tmp_path: Path) -> Path:
    """Return the path of a migration in an app with SQL files."""
    for name in (
        "sql/guards",
        "sql/uninstall",
        "sql/0009_guard/guards",
        "sql/0009_guard/uninstall",
        "sql/0010_last/guards",
    ):
        path = tmp_path / f"{name}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"-- {name}")
    return tmp_path / "migrations" / "0002_sql.py"


@pytest.mark.parametrize("folder", ["sql", "sql/0009_guard"])
def test_the_files_and_their_reversal_are_from_one_folder(migration: Path, folder: str) -> None:
    operation = install(migration, "guards", folder=folder)
    assert (operation.sql, operation.reverse_sql) == (f"-- {folder}/guards", f"-- {folder}/uninstall")


def test_a_folder_without_uninstall_has_no_reversal(migration: Path) -> None:
    assert install(migration, "guards", folder="sql/0010_last").reverse_sql == RunSQL.noop
