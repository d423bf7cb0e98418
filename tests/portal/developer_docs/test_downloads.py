"""The files that the documentation offers for download are identical to those in the repository."""

from pathlib import Path

import pytest
from django.test import Client

from portal.developer_docs import downloads


@pytest.mark.rule("docs.downloads")
@pytest.mark.parametrize("name", downloads.FILES)
def test_a_download_equals_the_file(name: str) -> None:
    answer = Client().get(f"/api/docs/{name}")
    assert answer.status_code == 200
    assert answer.content == downloads.FILES[name].read_bytes()
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'


def test_there_are_seven_quick_starts_and_six_receivers() -> None:
    assert [program.language for program in downloads.quick_starts()] == list(downloads.LANGUAGES.values())
    assert [program.language for program in downloads.receiver_programs()] == [
        "Python",
        "Node",
        "TypeScript",
        "PHP",
        "Go",
        "Ruby",
    ]


def test_each_receiver_shows_how_it_catches_up() -> None:
    found = downloads.catch_up_parts()
    assert [program.language for program in found] == ["Python", "Node", "TypeScript", "PHP", "Go", "Ruby"]
    for program in found:
        assert "status=authorized" in program.code and "sort=updated_at" in program.code, program.name
        assert 15 < len(program.code.splitlines()) < 30 and "verify" not in program.code


@pytest.mark.parametrize(
    "name", ["nothing.py", "..%2Fpage.py", "page.py", "__init__.py", "%00", "receiver.py%00"]
)
def test_other_files_are_a_404(name: str) -> None:
    assert Client().get(f"/api/docs/{name}").status_code == 404


def test_a_post_is_refused() -> None:
    assert Client().post("/api/docs/receiver.py").status_code == 405


def test_a_quick_start_is_short_and_fits_the_column_of_the_page() -> None:
    for program in downloads.quick_starts():
        lines = program.code.splitlines()
        assert len(lines) <= {"Go": 86, "Ruby": 60}.get(program.language, 72), program.name
        assert [line for line in lines if len(line.expandtabs(2)) > 88] == [], program.name


def test_the_style_sheet_shows_the_chosen_language_of_each_choice() -> None:
    shown = Path("static/css/docs.css").read_text()
    for number in range(1, len(downloads.LANGUAGES) + 1):
        assert f"input:nth-of-type({number}):checked ~ .tab:nth-of-type({number})" in shown
