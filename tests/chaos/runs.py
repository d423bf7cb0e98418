"""Carries out runs, each of which has one fault, one seed and its own merchant.

Several runs take place at the same time, so that their faults overlap.
"""

import json
import statistics
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from random import Random
from typing import NamedTuple

from tests.chaos import violations
from tests.chaos.backend import Backend, GaveUp
from tests.chaos.faults import Fault
from tests.chaos.stories import PLOTS, Story
from tests.chaos.world import World
from tests.journeys.merchant import Credentials
from tests.journeys.receiver import Receiver
from tests.journeys.service import Service

CHECKOUTS = 4
AT_ONCE = 12
RECOVERED_WITHIN = 60.0
READ_EVERY = 0.1  # seconds


class Run(NamedTuple):
    """A fault with a seed."""

    fault: str
    seed: int


class NewMerchant(NamedTuple):
    """A merchant that only one run uses."""

    uuid: str
    credentials: Credentials


class Result(NamedTuple):
    """The result of a run.

    `seconds` is the time from the end of the fault until all work was done. `answers` is the number of answers
    whose order was checked.
    """

    run: Run
    violations: list[str]
    seconds: float
    answers: int = 0


class Chaos:
    """Runs the faults of a table (see faults.py) against a running service."""

    def __init__(
        self, faults: Mapping[str, Fault], world: World, service: Service, receiver: Receiver
    ) -> None:
        self._faults, self._world, self._service, self._receiver = faults, world, service, receiver
        self._secrets: list[str] = []
        receiver.secrets = self._secrets

    def run_all(self, runs: Iterable[Run]) -> list[Result]:
        """Carry out all runs and return their results. All merchants are created before the first fault."""
        planned = list(runs)
        merchants = iter(self._new_merchants(len(planned)))
        results: list[Result] = []
        for is_apart in (False, True):
            own = [run for run in planned if self._faults[run.fault].is_apart == is_apart]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                results += pool.map(self._run_safely, own, merchants)
        return results

    def _run_safely(self, run: Run, merchant: NewMerchant) -> Result:
        try:
            return self._run(run, merchant)
        except BaseException:
            return Result(run, [traceback.format_exc(limit=6)], 0.0)

    def _run(self, run: Run, merchant: NewMerchant) -> Result:
        chance = Random(f"{run.fault} {run.seed}")
        backend = self._subscribed(merchant)
        plots = [self._faults[run.fault].plot, *chance.choices(sorted(PLOTS), k=CHECKOUTS - 1)]
        stories = [Story(backend, Random(chance.random())) for _ in plots]
        threads = [
            threading.Thread(target=_tell, args=(story, plot))
            for story, plot in zip(stories, plots, strict=True)
        ]
        for thread in threads:
            thread.start()
        with reading(stories):
            time.sleep(chance.uniform(0, 0.4))
            self._faults[run.fault].strike(self._world, chance)
            mended_at = time.monotonic()
            for thread in threads:
                thread.join()
            left = self._come_to_rest(merchant.uuid)
        seconds = time.monotonic() - mended_at
        found = violations.find_violations(self._world, merchant.uuid, stories, self._receiver)
        answers = sum(bool(call.seen) for _, call in backend.calls)
        return Result(run, found + [f"never at rest: {row}" for row in left], seconds, answers)

    def _new_merchants(self, count: int) -> list[NewMerchant]:
        made = json.loads(self._service.command("make_merchants", str(count)))
        return [
            NewMerchant(one["merchant_uuid"], Credentials(one["client_id"], one["client_secret"]))
            for one in made
        ]

    def _subscribed(self, merchant: NewMerchant) -> Backend:
        backend = Backend(self._service.base_url, merchant.credentials)
        asked = {"url": self._receiver.url, "event_types": ["*"]}
        answer = backend.call("POST", "merchant/v1/webhooks/subscription", asked).json()["data"]
        if "signing_secret" not in answer:  # the web process died before it sent the response with the secret
            answer = backend.call(
                "POST", "merchant/v1/webhooks/secret/rotate", {"revoke_previous": True}
            ).json()["data"]
        self._secrets.append(answer["signing_secret"])
        return backend

    def _come_to_rest(self, merchant_uuid: str) -> list[str]:
        """Wait up to RECOVERED_WITHIN seconds until all work is done. Return the work that is still open after that."""
        end = time.monotonic() + RECOVERED_WITHIN
        left = ["everything"]
        while left and time.monotonic() < end:
            try:
                left = violations.unfinished_work(self._world, merchant_uuid)
            except Exception as error:  # for example, while PostgreSQL is recovering
                left = [type(error).__name__]
            if left:
                time.sleep(0.5)
        return left


@contextmanager
def reading(stories: Sequence[Story]) -> Iterator[None]:
    """During the block, read the checkouts of the stories again and again in another thread."""
    is_over = threading.Event()

    def read_all() -> None:
        while not is_over.wait(READ_EVERY):
            for story in stories:
                if story.checkout_uuid:
                    with suppress(GaveUp):
                        story.backend.read(story.checkout_uuid)
                        story.backend.read_list()

    thread = threading.Thread(target=read_all)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _tell(story: Story, plot: str) -> None:
    try:
        story.tell(plot)
    except Exception as error:
        story.backend.broken_rules.append(f"{plot} of {story.checkout_uuid}: {type(error).__name__} {error}")


def table(results: list[Result]) -> str:
    """Return a table of the runs, with the violations and the median and maximum recovery time of each fault."""
    lines = [f"{'fault':<42} {'runs':>5} {'violations':>10} {'p50 s':>7} {'max s':>7}"]
    order = [result.run.fault for result in results].index
    for fault in sorted({result.run.fault for result in results}, key=order):
        own = [result for result in results if result.run.fault == fault]
        seconds = [result.seconds for result in own]
        broken = sum(len(result.violations) for result in own)
        p50, maximum = statistics.median(seconds), max(seconds)
        lines.append(f"{fault:<42} {len(own):>5} {broken:>10} {p50:>7.1f} {maximum:>7.1f}")
    return "\n".join(lines)
