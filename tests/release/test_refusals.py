"""If a version cannot be released, `make release` refuses it, with a sentence for each reason."""

import subprocess
from pathlib import Path

import pytest

from tests.release import ROOT, frozen
from tests.release.refusals import refusals

CHANGELOG = "# Changes\n\n## 1.2.0 (2026-12-24)\n\n- New.\n\n## 1.1.9 (2026-11-30)\n\n- First.\n"
NOTES = "# Upgrading\n\n### 1.2.0\n\nRestart all processes.\n"


def git(project: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@acme.example", "-c", "commit.gpgSign=false")
    subprocess.run(["git", *who, *arguments], cwd=project, check=True, capture_output=True)


def write(project: Path, name: str, text: str) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text(text)


def commit(project: Path, name: str, text: str) -> None:
    write(project, name, text)
    git(project, "add", "--all")
    git(project, "commit", "--message", "Change")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a repository whose version 1.1.9 is released, and whose version 1.2.0 can be released."""
    git(tmp_path, "init", "--initial-branch", "main")
    write(tmp_path, "checkout/migrations/0001_initial.py", "operations = []\n")
    write(tmp_path, frozen.LIST, "")
    frozen.write(tmp_path)
    write(tmp_path, "CHANGELOG.md", CHANGELOG)
    commit(tmp_path, "docs/upgrade.md", NOTES)
    git(tmp_path, "tag", "v1.1.9")
    return tmp_path


def test_a_new_version_is_accepted(project: Path) -> None:
    assert list(refusals(project, "1.2.0")) == []


def test_the_first_version_is_accepted(project: Path) -> None:
    git(project, "tag", "--delete", "v1.1.9")
    commit(project, "CHANGELOG.md", CHANGELOG.partition("\n## 1.1.9")[0])
    assert list(refusals(project, "1.2.0")) == []


def test_a_missing_version() -> None:
    assert list(refusals(ROOT, "")) == ["Name the version: make release VERSION=1.1.0"]


@pytest.mark.parametrize("version", ["1.2", "v1.2.0", "1.2.0-rc.1", "1.02.0", "next"])
def test_a_version_that_is_not_three_numbers(version: str) -> None:
    assert list(refusals(ROOT, version)) == [f"{version} is not a version such as 1.1.0."]


def test_a_version_that_has_a_tag(project: Path) -> None:
    git(project, "tag", "v1.2.0")
    assert list(refusals(project, "1.2.0")) == ["Version 1.2.0 is released: the tag v1.2.0 exists."]


@pytest.mark.parametrize("released", ["1.2.1", "1.10.0", "2.0.0"])
def test_a_version_that_is_not_greater_than_a_tag(project: Path, released: str) -> None:
    git(project, "tag", f"v{released}")
    assert list(refusals(project, "1.2.0")) == [f"1.2.0 is not greater than {released}, the last version."]


def test_a_version_that_is_not_greater_than_another_of_the_changelog(project: Path) -> None:
    commit(project, "CHANGELOG.md", CHANGELOG.replace("1.1.9", "1.3.0"))
    assert list(refusals(project, "1.2.0")) == ["1.2.0 is not greater than 1.3.0, the last version."]


@pytest.mark.parametrize("heading", ["1.2.0", "1.2.0 (soon)", "1.2.0 (2026-02-30)"])
def test_a_version_without_a_date_in_the_changelog(project: Path, heading: str) -> None:
    commit(project, "CHANGELOG.md", f"# Changes\n\n## {heading}\n\n- New.\n")
    (reason,) = refusals(project, "1.2.0")
    assert reason.startswith('CHANGELOG.md has no heading "## 1.2.0 (')


def test_changes_that_are_not_released(project: Path) -> None:
    commit(project, "CHANGELOG.md", CHANGELOG.replace("## 1.2.0", "## Unreleased\n\n- More.\n\n## 1.2.0"))
    (reason,) = refusals(project, "1.2.0")
    assert reason.startswith('CHANGELOG.md has the heading "Unreleased"')


def test_a_version_without_notes_for_operators(project: Path) -> None:
    commit(project, "docs/upgrade.md", "# Upgrading\n\n### 1.1.9\n")
    assert list(refusals(project, "1.2.0")) == [
        'docs/upgrade.md has no heading "### 1.2.0" with notes for operators.'
    ]


@pytest.mark.parametrize("name", ["docs/upgrade.md", "new.py"])
def test_changes_without_a_commit(project: Path, name: str) -> None:
    write(project, name, NOTES + "\n")
    (reason,) = refusals(project, "1.2.0")
    assert reason.startswith("Commit these changes, or remove them:\n") and reason.endswith(name)


def test_another_branch(project: Path) -> None:
    git(project, "switch", "--create", "later")
    assert list(refusals(project, "1.2.0")) == ["Releases are made on the branch main, not on later."]


def test_a_released_migration_that_has_changed(project: Path) -> None:
    commit(project, "checkout/migrations/0001_initial.py", "operations = [1]\n")
    (reason,) = refusals(project, "1.2.0")
    assert reason.startswith("checkout/migrations/0001_initial.py belongs to a released version")


def test_the_command_prints_the_reasons_and_exits_with_1() -> None:
    command = ["make", "--no-print-directory", "--old-file=.venv/.installed", "release", "VERSION=1.2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and done.stdout == ""
    assert done.stderr.startswith("1.2 is not a version such as 1.1.0.\n")
