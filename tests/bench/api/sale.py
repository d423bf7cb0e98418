"""Measures a sale: 600 buyers within a minute. Each starts at the first page and ends at the confirmed page.

All parts are real and share the cores with the buyers: the proxy with TLS, two web processes, two workers,
PostgreSQL and Valkey. The bank is called over HTTP, is slow, and loses answers. The shop captures each order
in its webhook.
"""

import asyncio
import json
import os
import re
import ssl
import statistics
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.bench.api import report
from tests.bench.sale import buyers, cores, stage
from tests.bench.sale.buyers import Bought
from tests.bench.sale.stage import Stage

BUYERS, WITHIN = 600, 60.0
# Twelve buyers warm up the service and are not measured. Their numbers start at 5000.
WARM, LAST = 12, 5000
# The rates that are tried, in buyers per second, and the number of seconds for each rate.
RATES, RATE_SECONDS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20), 20.0
Figure = tuple[str, float, float]  # name, value, budget
# Budgets in seconds: for a page, for the time from the hold to the shop's webhook, and for a capture. The
# bank's time for an authorization or a capture is left out.
PAGE_P95, HEARD_P95, CAPTURE_P99 = 0.3, 0.15, 0.3
# Even if the bank is slow, a capture request must be answered within this many seconds.
ANSWERED_WITHIN = 8.0
# Requests for the bank's pages. They do not count as requests for our pages.
OF_THE_BANK = {"bank", "bank POST"}
OF_THE_API = {"create"}
# A pair name='value' in a log line.
_FACT = re.compile(r"(\w+)='?([^' ]*)'?")
# The words in a logged value. The last word is the value itself: `capture` in `Kind.CAPTURE`.
_WORD = re.compile(r"[a-z_]+")
_STATUSES = "SELECT status, count(*)::int FROM checkout_checkout GROUP BY status"


def run(folder: Path, scale: float) -> None:
    """Run the sale and print its figures with their budgets. Find the highest rate that meets all budgets."""
    place = folder / "sale"
    place.mkdir()
    count, within = max(20, round(BUYERS * scale)), WITHIN * scale
    with stage.ready(place) as running:
        arrived(running, WARM, 4.0, first=LAST)
        before = _megabytes(running)
        figures = measured(running, place, count, within, first=0)
        report.line(f"memory {before:.0f} MB before, {_megabytes(running):.0f} MB after")
        judge("sale", figures)
        running.service.prove_ledger()
        report.line("the ledger is proven")
        reached = count / within
        rates = [rate for rate in RATES if rate > reached] if _are_kept(figures) else RATES
        report.line(_first_to_fail(running, place, rates, first=count))


def judge(subject: str, figures: Sequence[Figure]) -> None:
    """Print the figures with their budgets."""
    rows = [(name, report.judged(f"{subject}, {name}", is_, budget)) for name, is_, budget in figures]
    report.table((f"a {subject}", "is"), rows)


def _first_to_fail(running: Stage, place: Path, rates: Iterable[float], first: int) -> str:
    """Increase the rate of buyers until a budget is missed. Describe this rate and the missed budgets."""
    for rate in rates:
        count = round(rate * RATE_SECONDS)
        figures = measured(running, place, count, RATE_SECONDS, first)
        first += count
        if not _are_kept(figures):
            missed = ", ".join(f"{name} {is_:.2f}" for name, is_, budget in figures if is_ > budget)
            return f"first fails at {rate:g} buyers a second: {missed}"
        report.line(f"{rate:g} buyers a second: kept")
    return f"kept at {RATES[-1]:g} buyers a second, the highest rate that is tried"


def measured(running: Stage, place: Path, count: int, within: float, first: int) -> Sequence[Figure]:
    """Run the sale with `count` buyers. Print each part's share of the CPU, and return the figures."""
    report.progress(f"{count} buyers within {within:.0f} s")
    began, before = time.monotonic(), cores.used()
    bought = arrived(running, count, within, first)
    seconds = (time.monotonic() - began) * (os.cpu_count() or 1)
    shares = {name: (used - before.get(name, 0.0)) / seconds for name, used in cores.used().items()}
    words = ", ".join(
        f"{name} {share:.0%}" for name, share in sorted(shares.items(), key=lambda one: -one[1])
    )
    report.line(f"of the cores in {seconds:.0f} core-seconds: {words}")
    return _figures(running, bought, place)


def _are_kept(figures: Sequence[Figure]) -> bool:
    return all(is_ <= budget for _, is_, budget in figures)


def arrived(running: Stage, count: int, within: float, first: int = 0) -> Sequence[Bought]:
    """Run the sale with `count` buyers, whose numbers start at `first`. Return the buyers' results."""
    return asyncio.run(buyers.arrive(running.sale(first), count, within))


def _shop_records(running: Stage) -> dict[str, dict[str, Any]]:
    """Map each order to the shop's record of it."""
    trust = ssl.create_default_context(cafile=running.certificate)
    with urllib.request.urlopen(f"{running.shop_url}/seen", context=trust) as answer:
        return {row["checkout"]: row for row in json.loads(answer.read())}


def _errors(place: Path) -> list[str]:
    """Return the first 20 errors in the logs of the service's processes. Each is cut to 4,000 characters."""
    lines = [
        f"{log.stem}: {line[:4000]}"
        for log in sorted(place.glob("*.log"))
        for line in log.read_text(errors="replace").splitlines()
        if "level='error'" in line
    ]
    return lines[:20]


def _calls(place: Path) -> dict[tuple[str, str], tuple[str, float]]:
    """Map each kind of call and order to the verdict of the first such bank call, and its duration in seconds."""
    found: dict[tuple[str, str], tuple[str, float]] = {}
    for line in (place / "web.log").read_text(errors="replace").splitlines():
        if "event='provider'" in line and "asked='call'" in line:
            facts = dict(_FACT.findall(line))
            kind, verdict = (_WORD.findall(facts[name].lower())[-1] for name in ("kind", "verdict"))
            found.setdefault((kind, facts["checkout"]), (verdict, int(facts["ms"]) / 1000))
    return found


def _figures(running: Stage, bought: Sequence[Bought], place: Path) -> Sequence[Figure]:
    calls, orders = _calls(place), {one.checkout for one in bought}
    seen = {uuid: row for uuid, row in _shop_records(running).items() if uuid in orders}
    steps = _steps(bought, calls)
    report.table(("request", "times", "p50 ms", "p95 ms", "p99 ms"), [_row(*step) for step in steps.items()])
    pages = [took for step, times in steps.items() if step not in OF_THE_BANK | OF_THE_API for took in times]
    captures = [
        row["captured_in"] - calls["capture", uuid][1]
        for uuid, row in seen.items()
        if calls.get(("capture", uuid), ("",))[0] == "succeeded"
    ]
    _print_outcomes(running, bought, seen)
    if any(one.refusal for one in bought):
        for line in _errors(place):
            report.line(line)
    return [
        ("pages, p95 s", _of(pages, 95), PAGE_P95),
        ("hold → shop, p95 s", _of((row["heard_after"] for row in seen.values()), 95), HEARD_P95),
        ("capture − bank, p99 s", _of(captures, 99), CAPTURE_P99),
        (
            "longest capture, s",
            max((row["captured_in"] for row in seen.values()), default=0.0),
            ANSWERED_WITHIN,
        ),
        ("refused", sum(bool(one.refusal) for one in bought), 0),
        ("lost", sum(not one.refusal and one.states[-1] != "confirmed" for one in bought), 0),
        ("captured late", running.captured_late(), 0),
        ("captured twice", running.captured_twice(), 0),
    ]


def _steps(
    bought: Sequence[Bought], calls: dict[tuple[str, str], tuple[str, float]]
) -> dict[str, list[float]]:
    """For each step, return the durations of all requests in seconds, without the bank's time for an authorization."""
    steps: dict[str, list[float]] = defaultdict(list)
    for one in bought:
        for step, seconds in one.requests:
            _, bank = calls.get(("authorize", one.checkout), ("", 0.0)) if step == "paid" else ("", 0.0)
            steps[step].append(max(0.0, seconds - bank))
    return steps


def _print_outcomes(running: Stage, bought: Sequence[Bought], records: dict[str, dict[str, Any]]) -> None:
    silent = sum(1 for buyer in bought if {"checking", "silent", "asking"} & set(buyer.states))
    again = sum(1 for row in records.values() if len(row["answers"]) > 1)
    report.line(f"{len(bought)} buyers; {silent} saw the bank silent, {again} captures were asked again")
    report.line(f"orders so far: {dict(running.world.rows(_STATUSES))}")
    for words, times in Counter(buyer.refusal for buyer in bought if buyer.refusal).most_common(5):
        report.line(f"  {times} × {words}")


def _row(step: str, times: list[float]) -> tuple[str, ...]:
    return (step, str(len(times)), *(f"{1000 * _of(times, part):.0f}" for part in (50, 95, 99)))


def _of(times: Iterable[float], part: int) -> float:
    """Return a percentile of the times. `part` is a number from 1 to 99."""
    known = sorted(times)
    return statistics.quantiles(known, n=100, method="inclusive")[part - 1] if len(known) > 1 else sum(known)


def _megabytes(running: Stage) -> float:
    """Return the resident memory of web and workers in megabytes, including child processes."""
    found = 0
    for name in ("web", "worker", "second worker"):
        group = running.world.group(name)
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[2]) == group:
                    found += int(fields[21]) * 4096
            except OSError:
                continue
    return found / 1e6
