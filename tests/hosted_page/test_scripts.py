"""The names that payers' scripts define, and the functions that they call.

All scripts of a page share one scope, so two scripts must not define the same name. Older phones do not have
some functions, so the scripts must work without them.
"""

import re
from itertools import combinations
from pathlib import Path

import pytest

from config.lib.web.page_templates import FOLDERS

TOP_LEVEL = re.compile(r"^(?:async )?function (\w+)|^(?:const|let) (\w+)", re.MULTILINE)
LOADED = re.compile(r"js/\w+\.js")
EVERY_PAGE = Path("templates/hosted_page/frame.html").read_text()
# Functions that Safari supports only since version 15.4 or later. Before a script calls one of them, it must
# check whether the function exists.
YOUNG = (
    "at",
    "checkVisibility",
    "findLast",
    "hasOwn",
    "showPopover",
    "structuredClone",
    "toReversed",
    "toSorted",
)
TOO_NEW = re.compile(rf"\b(?:{'|'.join(YOUNG)})\(|event\.submitter\b")
PAGES = [page for page in sorted(Path("templates").rglob("*.html")) if LOADED.search(page.read_text())]


def names(script: str) -> set[str]:
    found = TOP_LEVEL.findall(Path("static", script).read_text())
    return {of_function or of_value for of_function, of_value in found}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_scripts_on_a_page_share_no_global_names(page: Path) -> None:
    loaded = {*LOADED.findall(page.read_text()), *LOADED.findall(EVERY_PAGE)}
    for one, other in combinations(sorted(loaded), 2):
        assert names(one) & names(other) == set(), f"{one} and {other}"


def scripts_of_payers() -> set[str]:
    pages = [page for folder in FOLDERS for page in (Path("templates") / folder).rglob("*.html")]
    return {script for page in pages for script in LOADED.findall(page.read_text())}


@pytest.mark.parametrize("script", sorted(scripts_of_payers()))
def test_payers_scripts_use_no_functions_that_older_phones_lack(script: str) -> None:
    assert TOO_NEW.findall(Path("static", script).read_text()) == []


def test_the_checks_of_scripts_find_problems() -> None:
    assert len(PAGES) > 8 and len(scripts_of_payers()) > 8
    assert TOO_NEW.search("rows.at(-1)") and not TOO_NEW.search("line.checkVisibility?.()")
    assert "nameOtherZones" in names("js/frame.js") and "minorUnits" in names("js/split.js")
