"""`make variables`: generates `.env.example` and the table in docs/operate.md from the table of variables."""

import re
import textwrap
from pathlib import Path
from typing import Any

from config.variables.table import TABLE
from config.variables.variable import MISSING, Variable

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE, PAGE = ROOT / ".env.example", ROOT / "docs/operate.md"
HEADING = "## Settings\n"
HEAD = "# The variables of a hosted environment. `make run` needs none of them. docs/operate.md has their defaults.\n"
INTERNAL = {"FAIL_POINTS", "SHOP_PORT", "WEBHOOK_LOOPBACK"}  # only for `local`, which needs no such file
AMAZON = ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def example_file() -> str:
    """Return the text of `.env.example`, with a comment on the meaning of each variable."""
    return HEAD + "".join(
        f"\n{_comment(described)}\n{name}={_example(described)}\n{_amazon(name)}"
        for name, described in TABLE.items()
        if name not in INTERNAL
    )


def _amazon(name: str) -> str:
    return "".join(f"{one}=\n" for one in AMAZON) if name == "SMS_SENDER" else ""


def _comment(described: Variable) -> str:
    words = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", described.means).replace("`", "")
    return textwrap.fill(words, 118, initial_indent="# ", subsequent_indent="# ", break_long_words=False)


def _example(described: Variable) -> str:
    if described.example or described.shown_default:
        return described.example
    return "" if described.default is MISSING else _as_text(described.default)


def table() -> str:
    """Return the Markdown table of all variables."""
    rows = (
        f"| `{name}` | {_default(described)} | {described.means} |"
        for name, described in TABLE.items()
        if name != "FAIL_POINTS"
    )
    return "\n".join(["| Variable | Default | Meaning |", "|---|---|---|", *rows, ""])


def _default(described: Variable) -> str:
    if described.default is MISSING and not described.shown_default:
        return "–"
    text = _as_text(described.default) if described.default is not MISSING else ""
    return described.shown_default or (f"`{text}`" if text else "–")


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | str) else ""


def written(page: str) -> str:
    """Return the page, with a current table below the heading."""
    before, _, rest = page.partition(HEADING)
    return before + HEADING + "\n" + table() + re.sub(r"\A\n*(?:\|.*\n)+", "", rest)


if __name__ == "__main__":
    EXAMPLE.write_text(example_file())
    PAGE.write_text(written(PAGE.read_text()))
