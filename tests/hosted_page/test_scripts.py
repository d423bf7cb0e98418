"""The names that the scripts on payers' pages define, and the functions that they call.

All scripts on a page share one scope, so two scripts must not define the same name. Older phones do not have
some functions, so the scripts must work without them.
"""

import json
import re
import subprocess
from itertools import combinations
from pathlib import Path

import pytest

from checkout.models import Item
from checkout.split import item_amounts
from config.lib.web.page_templates import FOLDERS

TOP_LEVEL = re.compile(r"^(?:async )?function (\w+)|^(?:const|let) (\w+)", re.MULTILINE)
LOADED = re.compile(r"js/\w+\.js")
EVERY_PAGE = Path("templates/hosted_page/frame.html").read_text()
# Functions that Safari has only since version 15.4 or later. Before a script calls one of them, it must check
# whether the function exists.
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
# With prices this high, a script that calculates with Number would round a unit's part of the discount wrongly.
BIG_FIRST, BIG_SECOND = 75_103_510_351_081, 14_896_489_648_974
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


@pytest.mark.rule("split.by_item")
@pytest.mark.parametrize("step", [1, 100])
@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [(2_000, 7_300, 300), (2_000, 7_300, -300), (BIG_FIRST, BIG_SECOND, 9_999 - BIG_FIRST - BIG_SECOND)],
)
def test_scripts_calculate_the_cost_of_units_as_the_server_does(
    first: int, second: int, shared: int, step: int
) -> None:
    goods = first + second
    one = Item("", "", 1, first, "GBP", "ticket", None)
    lines = [one, one._replace(unit_price=second), one._replace(unit_price=shared, category="fee")]
    costs = [item_amounts.cost_of(lines, [*units, 0], step=step) for units in ((1, 0), (0, 1), (1, 1))]
    calls = [[cost.goods, {"goods": str(goods), "shared": str(shared)}, step] for cost in costs]
    page = "globalThis.document = {querySelectorAll: () => []}; globalThis.addEventListener = () => {};"
    program = f"{page}{Path('static/js/units.js').read_text()}; const calls = {json.dumps(calls)};"
    shown = "console.log(JSON.stringify(calls.map((call) => costOfUnits(...call))))"
    ran = subprocess.run(["node", "-e", program + shown], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == [cost.amount for cost in costs]


@pytest.mark.parametrize("script", ["split", "group_items"])
def test_scripts_multiply_no_sums_themselves(script: str) -> None:
    text = Path(f"static/js/{script}.js").read_text()
    assert "costOfUnits(" in text and "shared)" not in text


def test_the_checks_of_scripts_find_problems() -> None:
    assert len(PAGES) > 8 and len(scripts_of_payers()) > 8
    assert TOO_NEW.search("rows.at(-1)") and not TOO_NEW.search("line.checkVisibility?.()")
    assert "nameOtherZones" in names("js/frame.js") and "minorUnits" in names("js/split.js")
