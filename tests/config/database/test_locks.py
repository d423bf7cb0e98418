"""Rows are locked with FOR NO KEY UPDATE, so that a foreign key check never waits for one of our locks."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
APPS = ("checkout", "config", "hosted_page", "payments", "portal", "webhooks")
STRONG = re.compile(r"select_for_update\((?!.*no_key=True)|(?<!NO KEY )FOR UPDATE")


def strong_locks(path: Path) -> Iterator[str]:
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if STRONG.search(line):
            yield f"{path.relative_to(ROOT)}:{number}"


def test_no_module_locks_rows_for_update() -> None:
    modules = [path for app in APPS for path in (ROOT / app).rglob("*.py")]
    assert len(modules) > 400
    assert [place for path in modules for place in strong_locks(path)] == []


def test_the_check_finds_a_lock_for_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(
        'rows.select_for_update(of=("self",))\n"SELECT 1 FOR UPDATE"\nrows.select_for_update(no_key=True)\n'
    )
    assert list(strong_locks(path)) == ["module.py:1", "module.py:2"]
