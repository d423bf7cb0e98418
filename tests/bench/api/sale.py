"""A sale that opens at ten: 600 buyers within a minute, from the hosted page's first view to the confirmed page.

Everything is real and shares the cores with the load: the proxy, two web processes, two workers, PostgreSQL, Valkey, a
bank over HTTP that takes its time and loses answers, a shop that captures in its webhook, TLS.
"""

import asyncio
import json
import re
import ssl
import statistics
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.bench.api import report
from tests.bench.sale import buyers, stage
from tests.bench.sale.buyers import Bought
from tests.bench.sale.stage import Stage

BUYERS, WITHIN = 600, 60.0
WARM = 12  # buyers who come first and are not counted
PAGE_P95, HEARD_P95, CAPTURE_P99 = 0.3, 0.15, 0.3  # seconds; pages and captures besides the bank's own time
ANSWERED_WITHIN = 8.0  # seconds within which a capture is answered, whatever the bank does
OF_THE_BANK = {"bank", "bank POST"}  # pages that are not ours
OF_THE_API = {"create"}
_FACT = re.compile(r"(\w+)='?([^' ]*)'?")  # of a log line
_WORD = re.compile(r"[a-z_]+")  # the last one of Kind.CAPTURE is the kind
_STATUSES = "SELECT status, count(*)::int FROM checkout_checkout GROUP BY status"


def run(folder: Path, scale: float) -> None:
    """Print what buyers, shop and bank have seen, and judge it."""
    place = folder / "sale"
    place.mkdir()
    count = max(20, round(BUYERS * scale))
    with stage.ready(place) as running:
        _bought(running, WARM, 4.0, first=BUYERS)
        before = _megabytes(running)
        report.progress(f"{count} buyers within {WITHIN * scale:.0f} s")
        bought = _bought(running, count, WITHIN * scale)
        report.line(f"memory {before:.0f} MB before, {_megabytes(running):.0f} MB after")
        _judge(running, bought, _seen(running), place)


def _bought(running: Stage, count: int, within: float, first: int = 0) -> Sequence[Bought]:
    return asyncio.run(buyers.arrive(running.sale(first), count, within))


def _seen(running: Stage) -> dict[str, dict[str, Any]]:
    """Return what the shop has seen of each order."""
    trust = ssl.create_default_context(cafile=running.certificate)
    with urllib.request.urlopen(f"{running.shop_url}/seen", context=trust) as answer:
        return {row["checkout"]: row for row in json.loads(answer.read())}


def _calls(place: Path) -> dict[tuple[str, str], tuple[str, float]]:
    """Return by kind and order what the bank answered to the first call, and after how many seconds."""
    found: dict[tuple[str, str], tuple[str, float]] = {}
    for line in (place / "web.log").read_text(errors="replace").splitlines():
        if "event='provider'" in line and "asked='call'" in line:
            facts = dict(_FACT.findall(line))
            kind, verdict = (_WORD.findall(facts[name].lower())[-1] for name in ("kind", "verdict"))
            found.setdefault((kind, facts["checkout"]), (verdict, int(facts["ms"]) / 1000))
    return found


def _judge(running: Stage, bought: Sequence[Bought], seen: dict[str, dict[str, Any]], place: Path) -> None:
    calls = _calls(place)
    steps: dict[str, list[float]] = defaultdict(list)
    for one in bought:
        for step, seconds in one.requests:
            _, bank = calls.get(("authorize", one.checkout), ("", 0.0)) if step == "paid" else ("", 0.0)
            steps[step].append(max(0.0, seconds - bank))
    report.table(("request", "times", "p50 ms", "p95 ms", "p99 ms"), [_row(*step) for step in steps.items()])
    pages = [took for step, times in steps.items() if step not in OF_THE_BANK | OF_THE_API for took in times]
    orders = {one.checkout for one in bought}
    heard = [row["heard_after"] for row in seen.values() if row["checkout"] in orders]
    captures = [
        row["captured_in"] - calls["capture", uuid][1]
        for uuid, row in seen.items()
        if uuid in orders and calls.get(("capture", uuid), ("",))[0] == "succeeded"
    ]
    longest = max((row["captured_in"] for uuid, row in seen.items() if uuid in orders), default=0.0)
    report.line("")
    report.table(
        ("a sale", "is"),
        [
            ("pages, p95 s", report.judged("sale, pages p95 s", _of(pages, 95), PAGE_P95)),
            ("hold → shop, p95 s", report.judged("sale, hold → shop p95 s", _of(heard, 95), HEARD_P95)),
            ("capture − bank, p99 s", report.judged("sale, capture p99 s", _of(captures, 99), CAPTURE_P99)),
            ("longest capture, s", report.judged("sale, longest capture s", longest, ANSWERED_WITHIN)),
        ],
    )
    _judge_orders(running, bought, seen)


def _judge_orders(running: Stage, bought: Sequence[Bought], seen: dict[str, dict[str, Any]]) -> None:
    refused = Counter(one.refusal for one in bought if one.refusal)
    lost = [one for one in bought if not one.refusal and one.states[-1] != "confirmed"]
    late, twice = running.captured_late(), running.captured_twice()
    in_doubt = sum(1 for one in bought if {"checking", "silent", "asking"} & set(one.states))
    again = sum(1 for row in seen.values() if len(row["answers"]) > 1)
    report.line(f"{len(bought)} buyers; {in_doubt} saw the bank silent, {again} captures were asked again")
    report.line(f"orders: {dict(running.world.rows(_STATUSES))}")
    for what, number in {
        "refused": sum(refused.values()),
        "lost": len(lost),
        "late": late,
        "twice": twice,
    }.items():
        report.judged(f"sale, {what}", number, 0)
        report.line(f"{what}: {number}")
    for words, times in refused.most_common(5):
        report.line(f"  {times} × {words}")
    running.service.prove_ledger()
    report.line("the ledger is proven")


def _row(step: str, times: list[float]) -> tuple[str, ...]:
    return (step, str(len(times)), *(f"{1000 * _of(times, part):.0f}" for part in (50, 95, 99)))


def _of(times: Iterable[float], part: int) -> float:
    """Return a percentile."""
    known = sorted(times)
    return statistics.quantiles(known, n=100, method="inclusive")[part - 1] if len(known) > 1 else sum(known)


def _megabytes(running: Stage) -> float:
    """Return the resident memory of web and workers, children too."""
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
