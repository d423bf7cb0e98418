"""If the provider hangs during a hundred captures, a few captures wait for it, and all others fail at once."""

import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import requests

from tests.chaos.world import World
from tests.journeys.merchant import Merchant, refusal
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
MANY = 100
# If there were more readers, their load on this test's own process would affect the measured times.
READERS = 2
USUAL_SECONDS = 3.0
HANGING_SECONDS = 8.0
ANSWERED_WITHIN = 8.0  # rule capture.eight_seconds
MARGIN = 2.0  # seconds, because the machine can be busy
READ_P99 = 0.25
# During the fault, a read must not take more than this many times as long as without the fault.
FACTOR = 3
RECOVERED_WITHIN = 60.0
BUSY, UNKNOWN = (503, "service_unavailable"), (504, "outcome_unknown")
BEGUN = """
SELECT p.checkout_uuid::text FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id
WHERE o.kind = 'capture' AND p.checkout_uuid = ANY(%s::uuid[])
"""
PAYMENTS = "SELECT id FROM payments_payment WHERE checkout_uuid = ANY(%s::uuid[])"
TAKEN = """
SELECT c.payment FROM bank_call l JOIN bank_charge c ON c.id = l.charge_id
WHERE l.kind = 'capture' AND l.verdict = 'succeeded' AND c.payment = ANY(%s)
"""


@pytest.fixture
def hanging(whole: tuple[World, Service]) -> Iterator[tuple[World, Service]]:
    """Yield the running service. At the end, remove the bank's faults, and prove the ledger."""
    world, service = whole
    yield world, service
    world.end_faults("capture")
    service.prove_ledger()


@contextmanager
def reading(merchant: Merchant, checkout_uuid: str, *, at_least: float) -> Iterator[list[float]]:
    """During the block, and for at least `at_least` seconds, read the checkout without a pause.

    Yield a list to which the duration of each read is added, in seconds.
    """
    seconds: list[float] = []
    is_over = threading.Event()
    end = time.monotonic() + at_least

    def read() -> None:
        with requests.Session() as session:
            session.trust_env = False
            session.headers.update(merchant.headers)
            while not is_over.is_set():
                answer = session.get(f"{merchant.base_url}/api/merchant/v1/checkouts/{checkout_uuid}")
                seconds.append(answer.elapsed.total_seconds())
                assert answer.status_code == 200, answer.text

    with ThreadPoolExecutor(READERS) as pool:
        readers = [pool.submit(read) for _ in range(READERS)]
        try:
            yield seconds
            time.sleep(max(0.0, end - time.monotonic()))
        finally:
            is_over.set()
    for reader in readers:
        reader.result()


def p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98]


def capture(merchant: Merchant, checkout_uuid: str) -> requests.Response:
    url = f"{merchant.base_url}/api/merchant/v1/checkouts/{checkout_uuid}/capture"
    return requests.post(url, json={}, headers=merchant.headers, timeout=60)


def captured_in_the_end(merchant: Merchant, checkout_uuid: str) -> bool:
    """Retry a capture as long as the response has a Retry-After. Return whether the last response is a 200."""
    end = time.monotonic() + RECOVERED_WITHIN
    while "Retry-After" in (answer := capture(merchant, checkout_uuid)).headers and time.monotonic() < end:
        time.sleep(int(answer.headers["Retry-After"]))
    return answer.status_code == 200


@pytest.mark.rule("capture.eight_seconds")
class TestAProviderThatHangs:
    def test_during_a_hundred_captures_delays_no_other_request(self, hanging: tuple[World, Service]) -> None:
        world, service = hanging
        merchant = service.new_merchant()
        with ThreadPoolExecutor(4) as pool:
            checkouts = list(pool.map(lambda _: merchant.held(), range(MANY)))
        with reading(merchant, checkouts[0], at_least=USUAL_SECONDS) as usual:
            pass
        world.set_fault("capture", "hang", 10 * MANY)
        with (
            reading(merchant, checkouts[0], at_least=HANGING_SECONDS) as meanwhile,
            ThreadPoolExecutor(MANY) as pool,
        ):
            answers = list(pool.map(lambda one: capture(merchant, one), checkouts))
        begun = {row[0] for row in world.rows(BEGUN, checkouts)}
        world.end_faults("capture")

        surplus = [one for one, answer in zip(checkouts, answers, strict=True) if answer.status_code == 503]
        assert {refusal(answer) for answer in answers} == {BUSY, UNKNOWN}
        assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers)
        assert begun == set(checkouts) - set(surplus), "of a surplus capture nothing is begun"
        assert max(answer.elapsed.total_seconds() for answer in answers) < ANSWERED_WITHIN + MARGIN
        assert p99(meanwhile) <= max(READ_P99, FACTOR * p99(usual))

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(lambda one: captured_in_the_end(merchant, one), checkouts))
        payments = [row[0] for row in world.rows(PAYMENTS, checkouts)]
        taken = [row[0] for row in world.rows(TAKEN, payments, of_bank=True)]
        assert sorted(taken) == sorted(payments), "each is captured once at the bank"
