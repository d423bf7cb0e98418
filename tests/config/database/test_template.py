"""The migrated database that every test run copies."""

import ast
import shutil
import threading
import time
from pathlib import Path

import pytest

from config.local import engines, environment
from tests import template
from tests.config.local.test_engines import value

OURS = {"config", "payments", "webhooks", "checkout", "hosted_page", "portal"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project with one app that has a migration and a view."""
    (tmp_path / "app" / "migrations").mkdir(parents=True)
    (tmp_path / "app" / "migrations" / "0001_initial.py").write_text("first = 1\n")
    (tmp_path / "app" / "views.py").write_text("view = 1\n")
    (tmp_path / "requirements.lock").write_text("django==5.2\n")
    return tmp_path


@pytest.fixture
def made_templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Make small stubs in a folder of this test instead of template databases. Return a list.

    It takes 0.3 s to make a stub. The list contains the folder of each stub that has been made.
    """
    made_templates: list[Path] = []

    def make(folder: Path) -> None:
        made_templates.append(folder)
        time.sleep(0.3)
        (folder / template.CLUSTER).mkdir(parents=True)
        (folder / template.CLUSTER / "PG_VERSION").write_text("18")
        environment.load_keys(folder)

    monkeypatch.setattr(template, "FOLDER", tmp_path / "templates")
    monkeypatch.setattr(template, "_migrate", make)
    return made_templates


class TestDigest:
    @pytest.mark.parametrize(
        "path", ["app/migrations/0001_initial.py", "app/migrations/0002_more.py", "requirements.lock"]
    )
    def test_changes_with_the_files_that_make_the_database(self, project: Path, path: str) -> None:
        before = template.digest(project)
        (project / path).write_text("another = 2\n")
        assert template.digest(project) != before

    def test_does_not_change_with_other_files(self, project: Path) -> None:
        before = template.digest(project)
        (project / "app" / "views.py").write_text("another = 2\n")
        assert template.digest(project) == before

    def test_covers_all_modules_that_our_migrations_import(self) -> None:
        migrations = [path for pattern in template.MAKERS[:2] for path in template.ROOT.glob(pattern)]
        assert len(migrations) > 15
        imported = {name for path in migrations for name in imports(path) if name.partition(".")[0] in OURS}
        assert {
            name for name in imported if not name.startswith("config.") and ".migrations." not in name
        } == set()


def imports(path: Path) -> list[str]:
    """Return the names of the modules that a file imports."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
    return found


class TestCopy:
    def test_is_a_migrated_database_with_its_keys(self, tmp_path: Path) -> None:
        template.copy_to(tmp_path)
        assert set(environment.read_private(tmp_path / environment.SECRETS)) == {"SECRET_KEY", "FIELD_KEYS"}
        with engines.running(tmp_path, durable=False, redis_url="redis://elsewhere") as own:
            assert value(own.database_url, "SELECT count(*) FROM checkout_checkout") == 0
            limits = "SELECT count(*) FROM pg_db_role_setting WHERE array_to_string(setconfig, ' ') LIKE '%timeout%'"
            assert value(own.database_url, limits) == 1

    def test_for_many_processes_builds_the_template_once(
        self, tmp_path: Path, made_templates: list[Path]
    ) -> None:
        folders = [tmp_path / str(number) for number in range(3)]
        threads = [threading.Thread(target=template.copy_to, args=[folder]) for folder in folders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made_templates) == 1
        assert {(folder / "postgres" / "PG_VERSION").read_text() for folder in folders} == {"18"}

    def test_never_uses_an_unfinished_or_outdated_template(
        self, tmp_path: Path, made_templates: list[Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        template.copy_to(tmp_path / "one")
        (first,) = template.FOLDER.glob("*/")
        shutil.copytree(first, first.with_suffix(".tmp"))
        monkeypatch.setattr(template, "digest", lambda _: "another")
        template.copy_to(tmp_path / "two")
        assert [path.name for path in template.FOLDER.glob("*/")] == ["another"]
        assert len(made_templates) == 2
