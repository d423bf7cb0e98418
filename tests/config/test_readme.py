import re
from pathlib import Path

import pytest

from checkout import states
from payments.providers.sandbox.cards import CARDS
from payments.providers.stripe import books
from tests.config import starting
from tests.house import house

README = Path("README.md").read_text()


def test_the_state_diagram_matches_the_table() -> None:
    moves = [f"    {origin} --> {to}: {cause}" for (origin, to), cause in states.ALLOWED_MOVES.items()]
    left = {origin for origin, _ in states.ALLOWED_MOVES}
    ends = [f"    {status} --> [*]" for status in states.Status if status not in left]
    assert "\n".join(["stateDiagram-v2", "    [*] --> created", *moves, *ends, ""]) in README


def test_every_test_card_is_listed() -> None:
    assert [card.spaced for card in CARDS.values() if card.spaced not in README] == []


class TestTakeRealMoney:
    CHAPTER = README.partition("## Take real money")[2].partition("\n## ")[0]
    NAMED = dict(re.findall(r"^ +([A-Z_]+)=(\S+)$", CHAPTER, re.MULTILINE))

    @pytest.mark.rule("provider.live_keys")
    def test_names_exactly_the_variables_that_production_requires(self) -> None:
        named = {name: value.replace("…", "0aZ") for name, value in self.NAMED.items()}
        assert len(named) == 4 and starting.refusal(starting.PRODUCTION | named) == ""
        without = {name: value for name, value in starting.PRODUCTION.items() if name not in named}
        for name in named:
            others = {other: value for other, value in named.items() if other != name}
            assert name in starting.refusal(without | others | {name: ""})

    def test_names_every_event_that_the_service_handles(self) -> None:
        groups = re.findall(r"`([a-z_.]+)\.\*`", self.CHAPTER)
        heard = {
            next((group for group in groups if name.startswith(f"{group}.")), name) for name in books.EVENTS
        }
        assert heard == set(groups)


def test_every_link_has_an_existing_target() -> None:
    pages = {page: page.read_text() for page in [Path("README.md"), *Path("docs").rglob("*.md")]}
    headings = {page.resolve(): {_anchor(line) for line in text.splitlines()} for page, text in pages.items()}
    for page, text in pages.items():
        for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
            there = (page.parent / path).resolve() if path else page.resolve()
            assert there.exists(), (page, path)
            assert not anchor or anchor in headings[there], (page, path, anchor)


def _anchor(line: str) -> str:
    """Return the anchor of a heading, or "" for any other line."""
    if not line.startswith("#"):
        return ""
    return re.sub(r"[^\w -]", "", line.lower()).strip().replace(" ", "-")


def test_the_table_of_folders_matches_their_docstrings() -> None:
    text = Path("docs/architecture.md").read_text()
    rows = {f"| `{name}` | {said} |" for name, said in house.packages()}
    assert len(rows) > 20 and {row for row in rows if row not in text} == set()
