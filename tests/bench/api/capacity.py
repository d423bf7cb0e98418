"""A simulation of what 10, 100 and 1,000 orders a second need, from the costs of an order on this machine.

Each request alternates between a core of the web processes (or of the workers) and one of PostgreSQL's. The
times vary at random (exponentially) around the times that `order` has measured. Banks answer with a median of
0.8 s and a p99 of 3 s, and people think for three seconds on each page. The simulation has queues, but no
slow disk and no locks inside PostgreSQL. The figures for many cores are therefore the best case.
"""

import heapq
import math
import random
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.bench.api import order, report

RATES = (10, 100, 1000)
POSTGRES_CORES = (16, 64)
BUSY = 0.6  # the share of time for which bought cores are busy
LIMIT = 0.7  # the most that they can be busy before queues grow
THINKING, BANK_MEDIAN, BANK_SIGMA = 3.0, 0.8, math.log(3 / 0.8) / 2.326
ASKS_BANK = ("paid", "capture")
PATIENCE = 1.5  # more slots for peaks, by the formula of docs/operate.md
WARM_UP, MEASURED = 60.0, 20.0  # seconds; after the warm-up, as many orders end as begin
SEED = 1


class Request(NamedTuple):
    """A step of an order: the place whose core it takes, and its seconds there and in PostgreSQL."""

    name: str
    place: str
    app: float
    postgres: float


class Figures(NamedTuple):
    """The results of a run: seconds of pages and of the API at p95, and how busy PostgreSQL was."""

    page: float
    api: float
    busy: float


class _Cores:
    """Cores of one kind, and the requests that wait for one, first come, first served."""

    def __init__(self, count: int) -> None:
        self.count, self.free, self.used = count, count, 0.0
        self.waiting = deque[tuple[Iterator[tuple[str, float]], float]]()


class Simulation:
    """Orders that arrive at random at a given rate, with a number of cores for each place."""

    def __init__(self, requests: Sequence[Request], cores: dict[str, int], rate: float) -> None:
        self._requests, self._rate = requests, rate
        self._cores = {place: _Cores(count) for place, count in cores.items()}
        self._chance = random.Random(SEED)
        self._events: list[tuple[float, int, Iterator[tuple[str, float]], str]] = []
        self._count, self._now = 0, 0.0
        self._took: dict[str, list[float]] = {"page": [], "api": [], "pump": []}

    def run(self) -> Figures:
        self._at(0.0, self._arrivals(), "")
        while self._now < WARM_UP + MEASURED:
            self._now, _, who, freed = heapq.heappop(self._events)
            if freed:
                self._free(freed)
            self._go_on(who)
        busy = self._cores["postgres"].used / MEASURED / self._cores["postgres"].count
        return Figures(_p95(self._took["page"]), _p95(self._took["api"]), busy)

    def _arrivals(self) -> Iterator[tuple[str, float]]:
        while True:
            yield "", self._chance.expovariate(self._rate)
            self._at(self._now, self._order(), "")

    def _order(self) -> Iterator[tuple[str, float]]:
        for request in self._requests:
            if request.place == "web" and not request.name.startswith("create"):
                yield "", self._chance.expovariate(1 / THINKING)
            began, bank = self._now, 0.0
            yield request.place, self._scattered(request.app / 2)
            yield "postgres", self._scattered(request.postgres)
            if request.name in ASKS_BANK:
                bank = self._chance.lognormvariate(math.log(BANK_MEDIAN), BANK_SIGMA)
                yield "", bank
            yield request.place, self._scattered(request.app / 2)
            kind = "pump" if request.place == "worker" else "api" if request.name in APIS else "page"
            if self._now >= WARM_UP:
                self._took[kind].append(self._now - began - bank)

    def _scattered(self, seconds: float) -> float:
        return self._chance.expovariate(1 / seconds) if seconds else 0.0

    def _go_on(self, who: Iterator[tuple[str, float]]) -> None:
        wanted = next(who, None)
        if wanted is None:
            return
        place, seconds = wanted
        if not place:
            self._at(self._now + seconds, who, "")
        elif self._cores[place].free:
            self._take(place, who, seconds)
        else:
            self._cores[place].waiting.append((who, seconds))

    def _take(self, place: str, who: Iterator[tuple[str, float]], seconds: float) -> None:
        self._cores[place].free -= 1
        self._cores[place].used += seconds if self._now >= WARM_UP else 0.0
        self._at(self._now + seconds, who, place)

    def _free(self, place: str) -> None:
        cores = self._cores[place]
        cores.free += 1
        if cores.waiting:
            self._take(place, *cores.waiting.popleft())

    def _at(self, moment: float, who: Iterator[tuple[str, float]], freed: str) -> None:
        self._count += 1
        heapq.heappush(self._events, (moment, self._count, who, freed))


APIS = ("create", "capture")


def _p95(taken: Sequence[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.95)] if taken else 0.0


def run(folder: Path, scale: float) -> None:
    """Print what each rate needs, and what one PostgreSQL with 16 or with 64 cores can carry."""
    costs = order.measured(folder, "capacity", scale)
    requests = [
        Request(
            cost.step.name,
            "worker" if cost.step.of == "pump" else "web",
            cost.app_ms / 1000,
            cost.postgres_ms / 1000,
        )
        for cost in costs
        if not cost.step.name.startswith("bank:")  # the bank's own pages run on the bank's cores
    ]
    by_order = {place: sum(r.app for r in requests if r.place == place) for place in ("web", "worker")}
    by_order["postgres"] = sum(request.postgres for request in requests)
    wal, commits = sum(cost.wal for cost in costs), sum(cost.commits for cost in costs)
    rows = [_row(rate, requests, by_order, wal, commits) for rate in RATES]
    heads = (
        "orders a second",
        "web",
        "workers",
        "PostgreSQL",
        "pages p95",
        "API p95",
        "slots",
        "commits/s",
        "WAL MB/s",
    )
    report.line("Cores, busy for 60 % of the time, and what people see")
    report.table(heads, rows)
    report.line("")
    carried = [_carried(cores, requests, by_order) for cores in POSTGRES_CORES]
    report.table(
        ("cores of one PostgreSQL", "orders a second", "busy", "pages p95", "WAL GB a day"),
        [(*row, f"{float(row[1]) * wal * 86_400 / 1e9:,.0f}") for row in carried],
    )


def _row(
    rate: int, requests: Sequence[Request], by_order: dict[str, float], wal: float, commits: float
) -> Sequence[str]:
    cores = {place: math.ceil(rate * seconds / BUSY) for place, seconds in by_order.items()}
    found = Simulation(requests, cores, rate).run()
    slots = math.ceil(rate * len(ASKS_BANK) * BANK_MEDIAN * PATIENCE)
    return (
        f"{rate:,}",
        *(str(cores[place]) for place in ("web", "worker", "postgres")),
        f"{1000 * found.page:.0f} ms",
        f"{1000 * found.api:.0f} ms",
        str(slots),
        f"{rate * commits:,.0f}",
        f"{rate * wal / 1e6:.1f}",
    )


def _carried(
    cores: int, requests: Sequence[Request], by_order: dict[str, float]
) -> tuple[str, str, str, str]:
    rate = LIMIT * cores / by_order["postgres"]
    enough = {place: math.ceil(rate * seconds / BUSY) for place, seconds in by_order.items()} | {
        "postgres": cores
    }
    found = Simulation(requests, enough, rate).run()
    return str(cores), f"{rate:.0f}", f"{100 * found.busy:.0f} %", f"{1000 * found.page:.0f} ms"
