"""Measures the CPU time and the statements of each request, relative to a bare view with one select."""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from checkout import authorizations, creation
from checkout.creation import Order
from config.lib import clock
from payments.cause import Cause
from payments.provider import CardUse
from payments.providers.sandbox import bank
from tests.bench.api import app, log_rows, report, statements
from tests.bench.api.app import Backend, Call
from tests.bench.api.reference import BareHandler
from tests.bench.api.statements import ProviderShare

ROUNDS, REPEATED = 41, 20
# After each batch of 12 calls of the bare view, there is a batch of 5 calls of a request.
BATCH, REFERENCES = 5, 12
# For each request, the statements of this many calls are counted. The result is the median, because some
# calls also read the operators' switches again.
COUNTED = 9
Calls = Sequence[Call]


class Request(NamedTuple):
    """A row of the table: a kind of request, its budgets, and a function that prepares calls of this kind."""

    name: str
    cpu_budget: float
    statement_budget: int | None
    calls: Callable[[int], Calls]


class Merchant:
    """A merchant that prepares the calls. The order of the table matters, because a refund needs a capture."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._held: list[str] = []
        self._captured = self._pay()
        self._take(self._captured).send()
        self._refunds = 0

    def table(self) -> Sequence[Request]:
        return (
            Request("token", 3, None, lambda times: [self._backend.new_token()] * times),
            Request("create, 5 items", 5, 8, lambda times: [self._backend.create()] * times),
            Request("read", 2.3, 3, lambda times: [self._backend.get(f"checkouts/{self._captured}")] * times),
            Request("capture", 8, 16, self._capture),
            Request("refund", 6, None, self._refund),
            Request("deliveries, 50 rows", 8, None, lambda times: [self._deliveries()] * times),
            Request("events, 50 rows", 6, 4, lambda times: [self._backend.get("events")] * times),
            Request("changes, 50 rows", 12, 4, lambda times: [self._changes()] * times),
        )

    def _pay(self) -> str:
        """Create an order and hold a card for it, as the hosted page does."""
        cause = Cause("bench")
        made = creation.create(self._backend.merchant, Order(**app.order()), cause=cause)
        token = bank.tokenise(subject=made.pk, number="4242424242424242")
        authorizations.authorize(made.pk, card=CardUse(token), lead=None, cause=cause)
        return str(made.pk)

    def _take(self, checkout_uuid: str) -> Call:
        return self._backend.post(f"checkouts/{checkout_uuid}/capture", {})

    def _capture(self, times: int) -> Calls:
        self._held = [self._pay() for _ in range(times)]
        return [self._take(checkout_uuid) for checkout_uuid in self._held]

    def cancel(self, times: int) -> Calls:
        """Hold a card for each of `times` orders. Return the calls that cancel these orders."""
        held = [self._pay() for _ in range(times)]
        return [self._backend.post(f"checkouts/{checkout_uuid}/cancel", {}) for checkout_uuid in held]

    def _refund(self, times: int) -> Calls:
        self._refunds += 1
        return [
            self._backend.post(
                f"checkouts/{checkout_uuid}/refund",
                {
                    "merchant_refund_ref": f"r-{self._captured}-{self._refunds}-{number}",
                    "reason": "Show cancelled",
                },
                status=204,
            )
            for number, checkout_uuid in enumerate(self._held[:times])
        ]

    def _changes(self) -> Call:
        return self._backend.get("checkouts?sort=updated_at")

    def _deliveries(self) -> Call:
        return self._backend.get("webhooks/deliveries")


def run(folder: Path, scale: float) -> None:
    """Print the costs of requests relative to the bare view: median ratios, and ratios of the minimum costs.

    If other programs use the same cores, the bare view is slowed more than the requests are, and the median
    ratios come out too low. The printed load shows whether this has happened.
    """
    app.log_to(folder / "requests.log")
    app.use("requests")
    backend = Backend.of_new_merchant("Acme")
    log_rows.write(backend.merchant, events=60, now=clock.now())
    judge(backend, Merchant(backend).table(), scale)


def judge(backend: Backend, table: Sequence[Request], scale: float) -> dict[str, float]:
    """Compare the requests with the bare view. Print the costs with their budgets, and return the ratios."""
    with ProviderShare().watched() as share:
        counts = {request.name: _count(request.calls(COUNTED), share) for request in table}
        ratios, costs = _measure(backend, table, max(3, round(ROUNDS * scale)), share)
    bare, rows = costs["bare"], []
    medians = {name: statistics.median(found) for name, found in ratios.items()}
    for request in table:
        cost, ratio = costs[request.name], medians[request.name]
        times = report.judged(f"{request.name}, × bare view", ratio, request.cpu_budget)
        sent = report.judged(f"{request.name}, statements", counts[request.name], request.statement_budget)
        rows.append((request.name, _milliseconds(cost), times, f"{min(cost) / min(bare):.2f}", sent))
    heads = ("request", "CPU ms", "× bare view", "× at the quietest", "statements")
    report.table(heads, [("bare view", _milliseconds(bare), "", "", ""), *rows])
    return medians


def _milliseconds(costs: Sequence[float]) -> str:
    return f"{1000 * statistics.median(costs):.2f}"


def _count(calls: Calls, share: ProviderShare) -> int:
    """Return the median number of statements that a call sends."""
    counts = []
    for call in calls:
        with statements.recorded(share) as sent:
            call.send()
        counts.append(len(sent))
    return statistics.median_low(counts)


def _measure(
    backend: Backend, table: Sequence[Request], rounds: int, share: ProviderShare
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """For each request, return its costs relative to the bare view, and its CPU seconds, of each round."""
    bare, bare_call = BareHandler(), Call("GET", f"/bare/{backend.merchant.pk}")
    ratios, costs = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for number in range(rounds + 1):
        for request in table:
            calls = request.calls(REPEATED)
            cost, reference = _costs(calls, share, lambda: bare_call.send(bare))
            if number:  # the first round is a warm-up
                costs[request.name].append(cost)
                costs["bare"].append(reference)
                ratios[request.name].append(cost / reference)
        if number % 10 == 1:
            report.progress(f"round {number} of {rounds}")
    return ratios, costs


def _costs(calls: Calls, share: ProviderShare, reference: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU seconds of one call (without those of the provider) and of one reference call.

    Batches of both calls alternate, so that a slow moment of the machine affects both. The first call in each
    batch is not measured, because the processor's caches still contain data of the previous batch.
    """
    bare = used = 0.0
    for start in range(0, len(calls), BATCH):
        reference()
        bare += _cpu([reference] * REFERENCES)
        first, *others = calls[start : start + BATCH]
        first.send()
        share.seconds = 0.0
        used += _cpu([call.send for call in others]) - share.seconds
    batches = len(calls) // BATCH
    return used / (batches * (BATCH - 1)), bare / (batches * REFERENCES)


def _cpu(calls: Sequence[Callable[[], object]]) -> float:
    """Make the calls. Return the CPU seconds that the whole process has used for them, in all its threads."""
    began = time.process_time()
    for call in calls:
        call()
    return time.process_time() - began
