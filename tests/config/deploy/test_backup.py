"""config/deploy/backup.sh makes complete back-ups, records when it made them, and deletes the oldest ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from config.local import engines
from tests import template
from tests.config.deploy import backups

pytestmark = [pytest.mark.journey, pytest.mark.rule("environment.backup")]
PASSWORD = "nobody-guesses-this-password"
# Programs that replace pg_dump. One loses the end of the file, the other fails after it has written a part of it.
TRUNCATING = """#!/bin/sh
{pg_dump} "$@"
for file; do :; done
truncate --size=-4096 "$file"
"""
FAILING = """#!/bin/sh
for file; do :; done
echo half > "$file"
exit 1
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[engines.Engines]:
    """Return a migrated database."""
    folder = tmp_path_factory.mktemp("backed-up")
    template.copy_to(folder)
    with engines.running(folder, durable=False, redis_url="redis://127.0.0.1:1/0") as running:
        yield running


@pytest.fixture(autouse=True)
def _no_backup_yet(own: engines.Engines) -> None:
    rows(own, "DELETE FROM payments_lastbackup RETURNING id")


def rows(own: engines.Engines, statement: str) -> list[Any]:
    with psycopg.connect(own.database_url) as connection:
        return connection.execute(statement).fetchall()


def age(own: engines.Engines) -> Any:
    """Return the seconds since the recorded back-up, or None if there is no record."""
    found = rows(own, "SELECT extract(epoch FROM clock_timestamp() - made_at) FROM payments_lastbackup")
    return found[0][0] if found else None


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_is_private_and_recorded(own: engines.Engines, tmp_path: Path) -> None:
    printed = backups.run(own, tmp_path)
    (name,) = names(tmp_path)
    assert name.startswith("checkout-20") and name.endswith(".dump") and name in printed
    assert (tmp_path / name).stat().st_mode & 0o077 == 0
    assert 0 <= age(own) < 60


def test_keeps_the_newest_ones(own: engines.Engines, tmp_path: Path) -> None:
    for former in ("checkout-2025-01-01T023000Z.dump", "checkout-2025-01-02T023000Z.dump", "notes.txt"):
        (tmp_path / former).touch()
    backups.run(own, tmp_path, BACKUP_KEEP="2")
    former, newest, other = names(tmp_path)
    assert former == "checkout-2025-01-02T023000Z.dump" and newest > former and other == "notes.txt"


def test_is_restored_if_asked(own: engines.Engines, tmp_path: Path) -> None:
    before = rows(own, "SELECT datname FROM pg_database ORDER BY 1")
    backups.run(own, tmp_path, "--restore")
    assert len(names(tmp_path)) == 1 and age(own) is not None
    assert rows(own, "SELECT datname FROM pg_database ORDER BY 1") == before


def test_that_cannot_be_restored_does_not_count(own: engines.Engines, tmp_path: Path) -> None:
    """A role that may not create databases cannot restore a back-up."""
    with psycopg.connect(own.database_url) as connection:
        connection.execute("CREATE ROLE reader LOGIN IN ROLE pg_read_all_data")
        connection.execute("GRANT INSERT, UPDATE ON payments_lastbackup TO reader")
    done = backups.try_run(own, tmp_path, "--restore", PGUSER="reader")
    assert done.returncode != 0 and "permission denied to create database" in done.stderr
    assert names(tmp_path) == [] and age(own) is None


@pytest.mark.parametrize("program", [TRUNCATING, FAILING], ids=["truncated", "failed"])
def test_that_is_incomplete_does_not_count(own: engines.Engines, tmp_path: Path, program: str) -> None:
    programs, folder = tmp_path / "programs", tmp_path / "folder"
    programs.mkdir()
    folder.mkdir()
    (programs / "pg_dump").write_text(program.format(pg_dump=backups.BINARIES / "pg_dump"))
    (programs / "pg_dump").chmod(0o700)
    (folder / "checkout-2025-01-01T023000Z.dump").touch()
    done = backups.try_run(own, folder, path=str(programs), BACKUP_KEEP="1")
    assert done.returncode != 0
    assert names(folder) == ["checkout-2025-01-01T023000Z.dump"] and age(own) is None


def test_by_another_program_is_only_recorded(own: engines.Engines, tmp_path: Path) -> None:
    backups.run(own, tmp_path, "--record")
    assert names(tmp_path) == [] and 0 <= age(own) < 60


@pytest.mark.parametrize(
    ("words", "variables", "reason"),
    [
        (["--restor"], {}, "backup: unknown argument --restor"),
        ([], {"BACKUP_KEEP": "0"}, "backup: BACKUP_KEEP must be a whole number from 1"),
        ([], {"BACKUP_KEEP": "many"}, "backup: BACKUP_KEEP must be a whole number from 1"),
        ([], {"PGDATABASE": "missing"}, 'database "missing" does not exist'),
        ([], {"BACKUP_DIR": "/nowhere"}, "/nowhere/checkout-"),
    ],
)
def test_is_refused_with_the_reason(
    own: engines.Engines, tmp_path: Path, words: list[str], variables: dict[str, str], reason: str
) -> None:
    done = backups.try_run(own, tmp_path, *words, **({"PGPASSWORD": PASSWORD} | variables))
    assert done.returncode != 0 and reason in done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    assert names(tmp_path) == [] and age(own) is None
