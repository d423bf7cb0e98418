"""Scripts of one page share one scope: none may take another's names."""

import re
from itertools import combinations
from pathlib import Path

import pytest

TOP_LEVEL = re.compile(r"^(?:async )?function (\w+)|^(?:const|let) (\w+)", re.MULTILINE)
LOADED = re.compile(r"js/\w+\.js")
EVERY_PAGE = Path("templates/hosted_page/frame.html").read_text()
PAGES = [page for page in sorted(Path("templates").rglob("*.html")) if LOADED.search(page.read_text())]


def names(script: str) -> set[str]:
    found = TOP_LEVEL.findall(Path("static", script).read_text())
    return {of_function or of_value for of_function, of_value in found}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_share_no_name_with_those_beside_them(page: Path) -> None:
    loaded = {*LOADED.findall(page.read_text()), *LOADED.findall(EVERY_PAGE)}
    for one, other in combinations(sorted(loaded), 2):
        assert names(one) & names(other) == set(), f"{one} and {other}"


def test_are_looked_at() -> None:
    assert len(PAGES) > 8 and "nameOtherZones" in names("js/zone.js") and "minorUnits" in names("js/split.js")
