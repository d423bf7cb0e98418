"""Checks the English of docs, docstrings, comments, pages and commit subjects, for `make check`.

The patterns find "marks": expressions that a reader has to read twice, and synonyms of plainer words. A
single mark can be right, so the limits are rates. A text without marks can still be hard to read, so the
checks do not replace a reader.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Maximum number of marks per 10,000 words: of the whole project, and of a file with at least MIN_WORDS words.
MAX_MARKS = 20
MAX_MARKS_OF_FILE = 60
MIN_WORDS = 100
MAX_SUBJECT = 72  # characters
# Only the subjects of commits after this one are checked.
FIRST_COMMIT = "dd900fcdb8bf"
NOT_READ = ("migrations", "node_modules")
MARKS = tuple(
    re.compile(pattern, re.IGNORECASE)
    # The comment after a pattern shows the plain words to use instead.
    for pattern in (
        r"\balone\b(?! in\b)",  # only
        r"\banew\b|\bonce more\b(?! than)",  # again
        r"\b(?:who|what|which)ever\b",  # the noun: the payer, a process, a row
        r"\bbesides?\b",  # next to, in addition to
        r"(?<!all or )\b(?:nobody|nothing|none are|none is)\b",  # no one, no row, None
        r"(?<!\.)\b(?:told|tells?)\b",  # notified, reports, shows
        r"\bof (?:ours|theirs|yours|its own|his|hers)\b",  # our, their, its own before the noun
        r"\bby (?:itself|themselves)\b",  # automatically, only
        r"\b(?:stands|stood|lies|goes out|goes on|comes to be)\b",  # is, is sent, becomes
        r"\b(?:likewise|meanwhile|thereby|thereof|therewith|wherever)\b",
        r"\bso too\b|\bnot so\b|\b(?:is|was) so\b",
        r"\bmay be\b",  # can be, might be
        r"\bthat (?:is|are)[.,;:]",
        r"\bof (?:before|then)\b",  # previous
        r"\ball the same\b",  # anyway
    )
)
NO_IMPERATIVE = re.compile(r"[a-z]|\w+(?:ing|ed|es)\b|(?:A|An|The|This|It|What|Who|If|Of|In)\b")
# The group of each pattern matches a comment. Strings are matched first, because `//` or `--` in a string
# does not start a comment. `//` needs white space before it, because `//` after `\` is part of a regular
# expression.
_SCRIPT_COMMENT = re.compile(
    r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|((?<!\S)//[^\n]*|/\*.*?\*/)""", re.DOTALL
)
_STYLE_COMMENT = re.compile(r""""[^"\n]*"|'[^'\n]*'|(/\*.*?\*/)""", re.DOTALL)
_SQL_COMMENT = re.compile(r"'(?:''|[^'])*'|(--[^\n]*|/\*.*?\*/)", re.DOTALL)
_SCRIPT_ELEMENT = re.compile(r"<script\b[^>]*>(.*?)</script>", re.DOTALL)
# These imperatives look like other verb forms to NO_IMPERATIVE.
VERBS = ("Bring", "Feed", "Embed", "Need", "Seed", "Speed")


def problems(root: Path = ROOT) -> Iterator[str]:
    """Yield a message for each file with too many marks, and one message if the whole project has too many."""
    marks = words = 0
    for path in _files(root):
        text = READERS[path.suffix](path.read_text())
        count, length = _count(text), len(re.findall(r"[A-Za-z’']+", text))
        if length >= MIN_WORDS and count > MAX_MARKS_OF_FILE * length / 10_000:
            found = ", ".join(sorted({match[0] for mark in MARKS for match in mark.finditer(text)}))
            yield f"{path.relative_to(root).as_posix()} has {count} marks in {length} words: {found}."
        marks, words = marks + count, words + length
    if marks > MAX_MARKS * words / 10_000:
        yield f"The project has {marks} marks in {words} words, and {MAX_MARKS} per 10,000 words are allowed."


def subject_problems(root: Path = ROOT, first: str = FIRST_COMMIT) -> Iterator[str]:
    """Yield a message for each commit subject after `first` that is too long or is not an imperative."""
    asked = ["git", "log", "--no-merges", "--format=%s", f"{first}..HEAD"]
    listed = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=False).stdout
    for subject in listed.splitlines():
        if len(subject) > MAX_SUBJECT:
            yield f"A commit subject has {len(subject)} characters, {MAX_SUBJECT} at most: {subject}"
        if (NO_IMPERATIVE.match(subject) and not subject.startswith(VERBS)) or subject.endswith("."):
            yield f"A commit subject is not in the form “Retry refunds that a provider returns”: {subject}"


def _files(root: Path) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    paths = (
        root / name for name in listed.stdout.split("\0") if name and not set(NOT_READ) & {*name.split("/")}
    )
    return sorted(path for path in paths if path.suffix in READERS and path.is_file())


def _count(text: str) -> int:
    return sum(len(mark.findall(text)) for mark in MARKS)


def _python(text: str) -> str:
    """Return the docstrings, the comments, and the strings that look like sentences."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    said = [token.string for token in tokens if token.type == tokenize.COMMENT]
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                said.append(docstring)
            case ast.Constant(value=str(string)) if _is_sentence(string):
                said.append(string)
    return "\n".join(dict.fromkeys(said))


def _is_sentence(text: str) -> bool:
    return bool(re.match(r"[A-Z][a-z’]*(?: [\w’-]+,?){4}", text))


def _markdown(text: str) -> str:
    return re.sub(r"```.*?```", " ", text, flags=re.DOTALL)


def _join_comments(pattern: re.Pattern[str], text: str) -> str:
    return "\n".join(found[1] for found in pattern.finditer(text) if found[1])


def _template(text: str) -> str:
    """Return the texts and comments of a template, and the comments of its scripts."""
    text = _SCRIPT_ELEMENT.sub(lambda element: _join_comments(_SCRIPT_COMMENT, element[1]), text)
    return re.sub(r"<style.*?</style>|<[^>]*>|\{%.*?%\}|\{\{.*?\}\}", " ", text, flags=re.DOTALL)


def _catalogue(text: str) -> str:
    """Return the English texts of a catalogue."""
    return "\n".join(re.findall(r'^msgid(?:_plural)? "(.+)"$', text, flags=re.MULTILINE))


READERS: dict[str, Callable[[str], str]] = {
    ".css": partial(_join_comments, _STYLE_COMMENT),
    ".html": _template,
    ".js": partial(_join_comments, _SCRIPT_COMMENT),
    ".md": _markdown,
    ".mjs": partial(_join_comments, _SCRIPT_COMMENT),
    ".po": _catalogue,
    ".py": _python,
    ".sql": partial(_join_comments, _SQL_COMMENT),
    ".ts": partial(_join_comments, _SCRIPT_COMMENT),
    ".txt": _template,
}

if __name__ == "__main__":
    found = [*problems(), *subject_problems()]
    print("\n".join(found) or "The English is plain.")
    sys.exit(bool(found))
