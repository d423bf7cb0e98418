"""The Lighthouse scores of the pages that payers see first or longest, on a slow phone with a slow network."""

import json
import os
import shutil
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser import chromium
from tests.browser.gallery import Stage
from tests.browser.order import Order
from tests.browser.test_buying import sign_in
from tests.journeys.service import ROOT, Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
LIGHTHOUSE = Path(__file__).with_name("lighthouse") / "node_modules" / "lighthouse" / "cli" / "index.js"
MINIMUM = {"performance": 95, "accessibility": 95, "best-practices": 95}
RUNS = 3
TRIES = 3
# Lighthouse reports this error if the browser's trace is incomplete. The test then runs Lighthouse again.
NO_TRACE = "NO_NAVSTART"


def scores(url: str, folder: Path, cookies: str = "") -> dict[str, float]:
    """Return the median score of each category, out of 100."""
    found = [scored(url, folder / f"{run}.json", cookies) for run in range(RUNS)]
    return {name: statistics.median(run[name] for run in found) for name in MINIMUM}


def scored(url: str, report: Path, cookies: str) -> dict[str, float]:
    """Return the score of each category in one run, out of 100."""
    command = [
        *("node", str(LIGHTHOUSE), url, "--quiet", "--output=json", f"--output-path={report}"),
        f"--only-categories={','.join(MINIMUM)}",
        f"--chrome-flags=--headless=new {chromium.QUIET}",
    ]
    if cookies:
        command.append(f"--extra-headers={json.dumps({'Cookie': cookies})}")
    environment = os.environ | {"CHROME_PATH": os.environ.get("CHROMIUM") or shutil.which("chromium") or ""}
    for tries in range(1, TRIES + 1):
        ended = subprocess.run(
            command, env=environment, cwd=ROOT, check=False, timeout=180, stderr=subprocess.PIPE, text=True
        )
        if tries == TRIES or NO_TRACE not in ended.stderr:
            break
    assert ended.returncode == 0, ended.stderr
    categories = json.loads(report.read_text())["categories"]
    return {name: 100 * categories[name]["score"] for name in MINIMUM}


def asked_for(folder: Path) -> str:
    """Return the names of the files that were loaded in every run."""
    each = [json.loads(report.read_text())["audits"]["network-requests"] for report in folder.glob("*.json")]
    assert len(each) == RUNS
    listed = [{item["url"].split("/")[-1] for item in audit["details"]["items"]} for audit in each]
    return " ".join(set.intersection(*listed))


def test_the_first_view(order: Order, tmp_path: Path) -> None:
    measured = scores(order.url, tmp_path)
    assert {name: score for name, score in measured.items() if score < MINIMUM[name]} == {}


def test_the_pay_step(order: Order, open_page: Callable[..., Page], tmp_path: Path) -> None:
    page = open_page()
    page.goto(order.url)
    sign_in(page)
    page.click(".all-mine")
    page.wait_for_selector("#number")
    measured = scores(page.url, tmp_path)
    assert {name: score for name, score in measured.items() if score < MINIMUM[name]} == {}


def test_the_bill_and_the_groups_link(
    service: Service, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = Stage(service, open_page).confirmed(mates=3)
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in page.context.cookies())
    link = page.locator(".one-link").get_attribute("data-url") or ""
    measured = [scores(page.url, tmp_path, cookies)]
    assert "bill.js" in asked_for(tmp_path), "it was let in: it saw the bill, and not the way to sign in"
    measured.append(scores(link, tmp_path))
    assert [
        {name: score for name, score in of_page.items() if score < MINIMUM[name]} for of_page in measured
    ] == [{}, {}]
