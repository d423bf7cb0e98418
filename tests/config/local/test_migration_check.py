"""`make run` refuses a database if a migration was rewritten after it was applied."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from config.local import CannotStart, migration_check

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]


def comment() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT obj_description('django_migrations'::regclass, 'pg_class')")
        kept: dict[str, str] = json.loads(cursor.fetchone()[0] or "{}")
        return kept


def reset() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'payments' AND name = '0002_sql'")


@pytest.fixture
def _new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark the SQL migration of payments as not applied, and replace the command that would apply it."""
    reset()
    monkeypatch.setattr(migration_check, "call_command", lambda *_, **__: None)


@pytest.mark.usefixtures("_new")
class TestMigrate:
    def test_records_applied_migrations_and_accepts_them_later(self) -> None:
        migration_check.migrate()
        assert list(comment()) == ["payments.0002_sql"]
        migration_check.migrate()

    def test_refuses_a_database_that_an_older_file_has_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        migration_check.migrate()
        ours = migration_check._digests()
        changed = ours | {"payments.0002_sql": "another", "payments.0003_later": "new"}
        monkeypatch.setattr(migration_check, "_digests", lambda: changed)
        with pytest.raises(CannotStart, match=r"older payments\.0002_sql\. Remove the folder \.local"):
            migration_check.migrate()
        assert list(comment()) == ["payments.0002_sql"]

    def test_accepts_migrations_that_were_added_later(self, monkeypatch: pytest.MonkeyPatch) -> None:
        migration_check.migrate()
        ours = migration_check._digests()
        monkeypatch.setattr(migration_check, "_digests", lambda: ours | {"payments.0003_later": "new"})
        migration_check.migrate()
        assert list(comment()) == ["payments.0002_sql", "payments.0003_later"]

    def test_ignores_migrations_applied_by_another_command(self) -> None:
        assert comment() == {}
        migration_check.migrate()
        assert "payments.0001_initial" not in comment()

    def test_covers_only_our_own_apps(self) -> None:
        apps = {name.partition(".")[0] for name in migration_check._digests()}
        assert {"payments", "checkout", "webhooks", "portal"} <= apps
        assert not {"auth", "sessions", "mfa"} & apps


@pytest.fixture
def _older() -> Iterator[None]:
    """Mark the tests' database as made by a different `0001_initial` of payments. All processes see the mark."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute('COMMENT ON TABLE django_migrations IS \'{"payments.0001_initial": "another"}\'')
        yield
        server.execute("COMMENT ON TABLE django_migrations IS NULL")


@pytest.mark.usefixtures("_older")
def test_make_run_says_what_to_do_about_an_older_database(tmp_path: Path) -> None:
    credentials = tmp_path / "credentials.json"
    command = (sys.executable, "-m", "config.local.seed", str(credentials))
    seed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert seed.returncode == 1
    assert seed.stderr == (
        "The database was made by an older payments.0001_initial."
        " Remove the folder .local, or empty the database of your own, and run again.\n"
    )
    assert not credentials.exists()
