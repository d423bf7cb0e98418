"""`make runbook`: writes the tables of the discrepancy runbook in docs/operate.md.

In the runbook, each topic is a heading with a table of discrepancy kinds. In the code, each discrepancy kind
names the anchor of its heading.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from payments.discrepancies import kinds
from payments.discrepancies.definitions import RUNBOOK, DiscrepancyKind

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / RUNBOOK
CHAPTER = "## Discrepancy runbook\n"
_TOPIC = re.compile(r"^### (.+)$", re.MULTILINE)
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_HEAD = ("| Kind | What is the matter | What to do | Remedy |", "|---|---|---|---|")


def topics(text: str) -> dict[str, str]:
    """Map the anchor of each topic in the runbook to the text of the topic."""
    _, _, rest = text.partition(CHAPTER)
    chapter = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    parts = _TOPIC.split(chapter)[1:]
    return {anchor(title): said for title, said in zip(parts[::2], parts[1::2], strict=True)}


def anchor(title: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-")


def table(of: Iterable[DiscrepancyKind]) -> str:
    """Return a Markdown table of these discrepancy kinds."""
    return "".join(f"{line}\n" for line in (*_HEAD, *_rows(of)))


def _rows(of: Iterable[DiscrepancyKind]) -> Iterator[str]:
    for kind in of:
        yield f"| `{kind.name}` | {kind.sentence} | {kind.what_to_do} | {kind.remedy} |"


def written(text: str) -> str:
    """Return the page. Each topic ends with a current table of its discrepancy kinds."""
    for name, said in topics(text).items():
        named = [kind for kind in kinds.TABLE.values() if kind.runbook == name]
        parts = [_TABLE.sub("", said).strip(), table(named).strip() if named else ""]
        text = text.replace(said, "\n\n".join(["", *filter(None, parts), ""]))
    return text


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
