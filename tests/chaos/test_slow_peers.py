"""If a bank, name server or SMS carrier is slow, only the calls that wait for it are delayed."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.chaos.world import World
from tests.journeys import polling
from tests.journeys.merchant import Json, Merchant, refusal
from tests.journeys.service import ROOT, Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
SLOW_CARD = "4000000000000341"  # each call to the bank for this card takes two seconds
PAYERS, CAPTURES, MANY = 10, 6, 16
CAPTURE_SECONDS = 8.0
MANY_NAMES, PROCESSES, NAME_SECONDS = 48, 2, 3.0
BUSY, LIMITED = (503, "service_unavailable"), (429, "rate_limited")
BEGUN = """
SELECT count(*) FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id
WHERE o.kind = 'authorize' AND p.checkout_uuid = ANY(%s::uuid[])
"""

ASK_FOR_CODES, SMS_SLOTS, WORKERS = 30, 8, 2
CARRIER_SECONDS = 10
AT_CARRIER = """
SELECT count(*) FROM hosted_page_smsmessage WHERE claimed_at IS NOT NULL AND ended_at IS NULL
"""
NOT_ENDED = "SELECT count(*) FROM hosted_page_smsmessage WHERE ended_at IS NULL"
STILL_THERE = "SELECT count(*) FROM hosted_page_smsmessage WHERE phone IS NOT NULL OR body IS NOT NULL"


@pytest.fixture
def peers(whole: tuple[World, Service]) -> Iterator[tuple[World, Merchant]]:
    """Yield the running service and a new merchant. At the end, remove all faults, and prove the ledger."""
    world, service = whole
    polling.until(world.is_ready, within=60, what="the web")
    yield world, service.new_merchant()
    world.end_faults("authorize")
    service.prove_ledger()


@pytest.fixture
def silent_names(peers: tuple[World, Merchant]) -> Iterator[Merchant]:
    """Yield a merchant. During the test, the web processes use a name server that never answers."""
    world, merchant = peers
    with contextlib.closing(socket.socket(type=socket.SOCK_DGRAM)) as server:
        server.bind(("127.0.0.1", 0))
        silent = f"127.0.0.1:{server.getsockname()[1]}"
        world.restart("web", PYTHONPATH=f"{ROOT / 'tests/chaos/silent_names'}:{ROOT}", SILENT_NAMES=silent)
        polling.until(world.is_ready, within=60, what="the web without names")
        yield merchant
    world.restart("web")
    polling.until(world.is_ready, within=60, what="the web")


def posted(merchant: Merchant, path: str, body: Json) -> Callable[[], requests.Response]:
    """Return a function that sends the body in a POST request on a separate connection."""
    url = f"{merchant.base_url}/api/{path}"
    return lambda: requests.post(url, json=body, headers=merchant.headers, timeout=60)


def capture(merchant: Merchant, checkout_uuid: str) -> Callable[[], requests.Response]:
    return posted(merchant, f"merchant/v1/checkouts/{checkout_uuid}/capture", {})


@pytest.mark.rule("limit.slow_peers")
class TestCaptures:
    def test_all_succeed_while_payers_wait_for_a_hanging_bank(self, peers: tuple[World, Merchant]) -> None:
        world, merchant = peers
        held = [merchant.held() for _ in range(CAPTURES)]
        unpaid = [merchant.create() for _ in range(PAYERS)]
        world.set_fault("authorize", "hang", 100 * PAYERS)
        with ThreadPoolExecutor(PAYERS + CAPTURES) as pool:
            pay = [posted(merchant, f"sandbox/v1/checkouts/{one}/pay", {}) for one in unpaid]
            payers = [pool.submit(one) for one in pay]
            polling.until(
                lambda: world.rows(BEGUN, unpaid)[0][0] == PAYERS, within=5, what="all payers at the bank"
            )
            captures = [pool.submit(capture(merchant, one)) for one in held]
            answers = [one.result() for one in captures]
            assert not any(one.done() for one in payers), "the payers were not waiting any more"
        assert [answer.status_code for answer in answers] == [200] * CAPTURES
        world.end_faults("authorize")
        for one in unpaid:
            merchant.at_rest(one, within=20)

    def test_that_arrive_at_the_same_time_all_succeed_at_a_slow_bank(
        self, peers: tuple[World, Merchant]
    ) -> None:
        _, merchant = peers
        with ThreadPoolExecutor(MANY) as pool:
            held = list(pool.map(lambda _: merchant.held(SLOW_CARD), range(MANY)))
            began = time.monotonic()
            answers = list(pool.map(lambda one: capture(merchant, one)(), held))
        assert [refusal(one) for one in answers if one.status_code != 200] == []
        assert time.monotonic() - began < CAPTURE_SECONDS


@pytest.mark.rule("limit.slow_peers")
class TestAMerchantsSlowNames:
    def test_block_one_request_of_a_process_and_delay_no_other(self, silent_names: Merchant) -> None:
        merchant = silent_names
        held = [merchant.held() for _ in range(CAPTURES)]
        asked: Json = {"url": "https://hooks.slow.example/", "event_types": ["*"]}
        register = posted(merchant, "merchant/v1/webhooks/subscription", asked)
        with ThreadPoolExecutor(MANY_NAMES) as pool:
            began = time.monotonic()
            waiting = [pool.submit(register) for _ in range(MANY_NAMES)]
            alive = [requests.get(f"{merchant.base_url}/livez", timeout=60) for _ in range(10)]
            captured = [capture(merchant, one)() for one in held]
            assert time.monotonic() - began < NAME_SECONDS, "the name servers were not waited for any more"
            answers = [one.result() for one in waiting]
        assert [one.status_code for one in alive + captured] == [200] * (len(alive) + CAPTURES)
        refusals = [refusal(one) for one in answers]
        assert 1 <= refusals.count((422, "validation_failed")) <= PROCESSES
        assert set(refusals) <= {(422, "validation_failed"), BUSY, LIMITED} and BUSY in refusals
        assert {one.headers["Retry-After"] for one in answers if one.status_code == 503} == {"1"}


@contextlib.contextmanager
def silent_carrier(world: World, seconds: int) -> Iterator[None]:
    """During the block, let the SMS carrier take `seconds` to accept each message."""
    is_over = threading.Event()

    def arm() -> None:
        while not is_over.wait(0.002):
            if not world.is_armed("sms_claimed"):
                world.arm("sms_claimed", f"sleep {seconds}")

    thread = threading.Thread(target=arm, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        world.disarm("sms_claimed")


def ask_for_code(merchant: Merchant, number: int) -> requests.Response:
    """Ask for an SMS code on the page of a new order, with the requests that a browser would send."""
    address = f"{merchant.base_url}/pay"
    order = {"id": merchant.create()}
    with requests.Session() as browser:
        browser.trust_env = False
        form = browser.get(address, params=order, timeout=60).text
        token = form.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
        typed = {"phone": f"07700 9002{number:02}", "csrfmiddlewaretoken": token}
        return browser.post(f"{address}/phone", typed, params=order, timeout=60, allow_redirects=False)


@pytest.mark.rule("limit.slow_peers", "sms.outbox")
class TestASilentCarrier:
    def test_delays_neither_sign_ins_nor_captures_nor_workers(self, peers: tuple[World, Merchant]) -> None:
        world, merchant = peers
        held = [merchant.held() for _ in range(CAPTURES + 1)]
        with silent_carrier(world, CARRIER_SECONDS):
            asked = [ask_for_code(merchant, number) for number in range(ASK_FOR_CODES)]
            assert [answer.status_code for answer in asked] == [303] * ASK_FOR_CODES
            polling.until(
                lambda: world.rows(AT_CARRIER)[0][0] == SMS_SLOTS * WORKERS,
                within=15,
                what="all at the carrier",
            )
            alive = [requests.get(f"{merchant.base_url}/livez", timeout=60) for _ in range(10)]
            captured = [capture(merchant, one)() for one in held[1:]]
            merchant.cancel(held[0])
            merchant.at_rest(held[0])  # wait until a worker has released the hold
            assert world.rows(AT_CARRIER)[0][0] == SMS_SLOTS * WORKERS, "the carrier was silent no more"
        assert [one.status_code for one in alive + captured] == [200] * (len(alive) + CAPTURES)
        polling.until(lambda: world.rows(NOT_ENDED)[0][0] == 0, within=40, what="the end of every text")
        assert world.rows(STILL_THERE)[0][0] == 0
