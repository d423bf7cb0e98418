"""The checks of the project's English read each kind of text, and report each limit that is exceeded."""

import subprocess
from pathlib import Path

import pytest

from tests.house import prose

PLAIN = "The pump retries the operation. " * 40  # 200 words
MARKED = "Nobody is told what was asked anew. " + PLAIN  # three marks
PLACES = {
    "guide.md": "{}\n",
    "module.py": '"""{}"""\n',
    "comments.py": "# {}\n",
    "strings.py": 'TEXT = "{}"\n',
    "page.html": "<p>{}</p>\n",
    "comment.html": "{{# {} #}}\n",
    "inline.html": "<script>\n// {}\n</script>\n",
    "script.js": "let next; // {}\n",
    "module.mjs": "/* {} */\nlet next;\n",
    "program.ts": "// {}\nlet next: number\n",
    "sheet.css": "/* {} */\n",
    "tables.sql": "-- {}\nSELECT 1;\n",
    "mail.txt": "{}\n",
    "django.po": 'msgid "{}"\nmsgstr ""\n',
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return an empty repository."""
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "config", "user.email", "dev@example.com")
    git(tmp_path, "config", "user.name", "Dev")
    commit(tmp_path, "Begin")
    return tmp_path


def git(root: Path, *command: str) -> str:
    return subprocess.run(
        ["git", *command], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(root: Path, subject: str) -> None:
    git(root, "commit", "--quiet", "--allow-empty", "--message", subject)


def write(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)
    git(root, "add", name)


@pytest.mark.parametrize("name", PLACES)
def test_a_file_with_too_many_marks_is_refused(project: Path, name: str) -> None:
    write(project, name, PLACES[name].format(PLAIN))
    assert list(prose.problems(project)) == []
    write(project, name, PLACES[name].format(MARKED))
    of_file, of_project = prose.problems(project)
    assert of_file == f"{name} has 3 marks in 207 words: Nobody, anew, told."
    assert of_project.startswith("The project has 3 marks in 207 words")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("module.py", f"nobody_told = 1\nKEY = 'nobody anew told'\n\n\ndef told() -> None:\n    {PLAIN!r}\n"),
        ("page.html", f"<p class='told anew'>{PLAIN}{{{{ nobody.told }}}}</p>"),
        ("guide.md", f"{PLAIN}\n```\nnobody told anew\n```\n"),
        (
            "inline.html",
            f"<p>{PLAIN}</p><script>const told = 'nobody anew';</script><style>.told {{}}</style>",
        ),
        (
            "script.js",
            f"// {PLAIN}\nconst told = ['// nobody', \"// told\", `\n// anew`, /https:\\/\\/nobody/];\n",
        ),
        ("sheet.css", f"/* {PLAIN} */\n.told::after {{ content: '/* nobody told anew */'; }}\n"),
        ("tables.sql", f"-- {PLAIN}\nSELECT 'it''s told -- nobody', anew FROM told;\n"),
    ],
)
def test_code_is_not_read(project: Path, name: str, text: str) -> None:
    write(project, name, text)
    assert list(prose.problems(project)) == []


def test_a_short_file_can_have_a_single_marked_expression(project: Path) -> None:
    write(project, "short.md", "Nobody answered.")
    for number in range(10):
        write(project, f"long{number}.md", PLAIN)
    assert list(prose.problems(project)) == []


@pytest.mark.parametrize("subject", ["Retry refunds", "Embed the logo", "Speed up the proof", "R" * 72])
def test_a_short_imperative_is_a_subject(project: Path, subject: str) -> None:
    first = git(project, "rev-parse", "HEAD")
    commit(project, subject)
    assert list(prose.subject_problems(project, first)) == []


@pytest.mark.parametrize(
    "subject",
    ["Retrying refunds", "Retried refunds", "The refunds are retried", "retry refunds", "Retry.", "R" * 73],
)
def test_another_subject_is_refused(project: Path, subject: str) -> None:
    first = git(project, "rev-parse", "HEAD")
    commit(project, subject)
    (problem,) = prose.subject_problems(project, first)
    assert problem.endswith(subject)


def test_a_tree_without_the_history_has_no_subjects(project: Path) -> None:
    commit(project, "retry")
    assert list(prose.subject_problems(project, "0" * 40)) == []
