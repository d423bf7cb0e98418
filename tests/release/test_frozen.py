"""`make check` refuses changes to released migrations and to the SQL files that they install."""

from pathlib import Path

import pytest

from tests.house.house import APPS
from tests.release import ROOT, frozen

MIGRATION, SQL = "portal/migrations/0001_initial.py", "payments/sql/ledger.sql"
NESTED = "payments/providers/sandbox/sql/storage.sql"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with released migrations."""
    for name in (MIGRATION, SQL, NESTED, frozen.LIST):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"{name} as released\n")
    frozen.write(tmp_path)
    return tmp_path


def test_released_files_pass(project: Path) -> None:
    assert list(frozen.problems(project)) == []


@pytest.mark.parametrize("name", [MIGRATION, SQL, NESTED])
def test_a_released_file_cannot_change(project: Path, name: str) -> None:
    with (project / name).open("a") as file:
        file.write(" ")
    assert list(frozen.problems(project)) == [
        f"{name} belongs to a released version: undo the change, and add a migration instead."
    ]


@pytest.mark.parametrize("name", [MIGRATION, SQL, NESTED])
def test_a_released_file_cannot_be_removed(project: Path, name: str) -> None:
    (project / name).unlink()
    assert list(frozen.problems(project)) == [
        f"{name} belongs to a released version: do not remove or rename it."
    ]


@pytest.mark.parametrize("name", ["portal/migrations/0002_sql.py", "portal/sql/0002_sql/guard.sql"])
def test_a_new_file_can_be_added_and_is_frozen_by_the_next_release(project: Path, name: str) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text("new\n")
    assert list(frozen.problems(project)) == []
    frozen.write(project)
    (project / name).write_text("changed\n")
    assert len(list(frozen.problems(project))) == 1


def test_each_migration_and_sql_file_of_this_project_is_frozen(tmp_path: Path) -> None:
    names = {path.relative_to(ROOT).as_posix() for path in frozen._files(ROOT)}
    ours = [path.relative_to(ROOT).as_posix() for app in APPS for path in (ROOT / app).rglob("*")]
    assert names == {
        name for name in ours if "/sql/" in name or ("/migrations/0" in name and name.endswith(".py"))
    }
    assert len(names) > 30
