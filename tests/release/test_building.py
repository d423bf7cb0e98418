"""`make release` sets the version, freezes its migrations, and builds a complete wheel and source archive."""

import base64
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.release import ROOT, frozen
from tests.release.test_refusals import commit, git

pytestmark = pytest.mark.long
VERSION = "987.6.5"
NAME = f"merchant_checkout_service-{VERSION}"
WHEEL, SOURCE, SBOM = f"{NAME}-py3-none-any.whl", f"{NAME}.tar.gz", f"{NAME}.cdx.json"
PRODUCT = (
    "checkout/",
    "config/",
    "hosted_page/",
    "payments/",
    "portal/",
    "static/",
    "templates/",
    "webhooks/",
)


def run(folder: Path, *command: str, python: Path | str = sys.executable, **variables: str) -> str:
    """Run Python in a folder with only these environment variables. Return its output."""
    done = subprocess.run(
        [python, *command],
        cwd=folder,
        env={"PATH": os.environ["PATH"]} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of this project, in a repository in which VERSION can be released."""
    folder = tmp_path_factory.mktemp("project")
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    translations = [path.relative_to(ROOT).as_posix() for path in (ROOT / "config/locale").rglob("*.mo")]
    for name in filter(lambda name: name and (ROOT / name).is_file(), [*names, *translations]):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    changelog, notes = folder / "CHANGELOG.md", folder / "docs" / "upgrade.md"
    changelog.write_text(f"# Changes\n\n## {VERSION} (2026-12-24)\n\n- New.\n")
    git(folder, "init", "--initial-branch", "main")
    commit(folder, "docs/upgrade.md", f"{notes.read_text()}\n### {VERSION}\n")
    return folder


@pytest.fixture(scope="module")
def said(project: Path) -> str:
    """Release VERSION, and return the output of the command."""
    return run(project, "-m", "tests.release", VERSION)


@pytest.fixture(scope="module")
def built(project: Path, said: str) -> Path:
    return project / "dist"


class TestRelease:
    def test_sets_the_version_and_freezes_the_migrations(self, project: Path, said: str) -> None:
        assert run(project, "manage.py", "version").startswith(f"{VERSION}+")
        assert "checkout/migrations/0001_initial.py\n" in (project / frozen.LIST).read_text()
        assert list(frozen.problems(project)) == []

    def test_prints_the_commands_and_runs_none_of_them(self, project: Path, said: str) -> None:
        assert f"git tag --sign v{VERSION}" in said and "twine upload" in said
        log = subprocess.run(
            ["git", "log", "--all", "--oneline"], cwd=project, capture_output=True, check=True
        )
        assert log.stdout.count(b"\n") == 1
        assert not subprocess.run(["git", "tag"], cwd=project, capture_output=True, check=True).stdout

    def test_builds_four_files_with_their_sums(self, built: Path) -> None:
        assert {path.name for path in built.iterdir()} == {WHEEL, SOURCE, SBOM, "SHA256SUMS"}
        assert (built / "SHA256SUMS").read_text() == "".join(
            f"{hashlib.sha256((built / name).read_bytes()).hexdigest()}  {name}\n"
            for name in sorted((WHEEL, SOURCE, SBOM))
        )
        assert json.loads((built / SBOM).read_text())["metadata"]["component"]["version"] == VERSION


class TestFiles:
    @pytest.fixture
    def whole(self, project: Path) -> set[str]:
        """Return the files in the repository and the compiled translations."""
        listed = subprocess.run(["git", "ls-files"], cwd=project, capture_output=True, text=True, check=True)
        translated = {path.relative_to(project).as_posix() for path in project.glob("config/locale/*/*/*.mo")}
        assert len(translated) == 5
        return translated.union(listed.stdout.splitlines())

    def test_the_source_archive_has_each_file(self, built: Path, whole: set[str]) -> None:
        with tarfile.open(built / SOURCE) as archive:
            assert {name.partition("/")[2] for name in archive.getnames()} == whole | {"PKG-INFO"}

    def test_the_wheel_has_each_file_of_the_product(self, built: Path, whole: set[str]) -> None:
        with zipfile.ZipFile(built / WHEEL) as archive:
            names = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert names == {name for name in whole if name.startswith(PRODUCT)}
        for kind in (".html", ".css", ".mo", ".sql", ".service", ".template", ".yml"):
            assert any(name.endswith(kind) for name in names), kind

    def test_a_second_build_gives_the_same_bytes(self, built: Path, tmp_path: Path) -> None:
        """The second build runs in another folder, from the files in the source archive."""
        shutil.unpack_archive(built / SOURCE, tmp_path)
        again = tmp_path / NAME
        (again / "PKG-INFO").unlink()
        for path in again.rglob("*.py"):
            os.utime(path, (0, 0))
        run(again, "-m", "tests.release.building", "dist")
        assert (again / "dist" / "SHA256SUMS").read_text() == (built / "SHA256SUMS").read_text()


# The variables of an installation whose database does not answer.
VARIABLES = {
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "ENVIRONMENT": "sandbox",
    "BASE_URL": "https://checkout.example",
    "ALLOWED_HOSTS": "checkout.example",
    "SECRET_KEY": secrets.token_urlsafe(50),
    "FIELD_KEYS": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
    "DATABASE_URL": "postgresql://checkout@127.0.0.1:1/checkout",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}
# A program that requests a page and translates a word. The page needs a template and the hashed static files.
SERVE = """
import django
django.setup()
from django.conf import settings
from django.test import Client
from django.utils import translation
page = Client(headers={"host": "checkout.example"}).get("/security", secure=True)
with translation.override("de"):
    print(settings.BASE_DIR, page.status_code, "/static/css/tokens." in page.text, translation.gettext("Card"))
"""


def test_the_installed_wheel_serves_pages_without_the_clone(built: Path, tmp_path: Path) -> None:
    """The wheel is installed into a new environment. The other packages come from the environment of the tests."""
    run(tmp_path, "-m", "venv", "installed")
    python = tmp_path / "installed" / "bin" / "python"
    wheel = str(built / WHEEL)
    run(tmp_path, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel, python=python)
    (site,) = tmp_path.glob("installed/lib/python*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib"))
    for command in ("check", "collectstatic --no-input", "makemigrations --check"):
        run(tmp_path, "-m", "django", *command.split(), python=python, **VARIABLES)
    said = run(tmp_path, "-c", SERVE, python=python, **VARIABLES)
    assert said.splitlines()[-1] == f"{site} 200 True Karte"
