"""A hundred simultaneous calls over HTTP have one outcome, which is the same for all callers."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
import requests

from tests.journeys.merchant import Merchant, refusal
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
SLOW_CARD = "4000000000000341"
CARD = "4242424242424242"
MANY = 100
LOCK_SECONDS = 3.0  # after this time, a call stops waiting for a row lock
HELD_SECONDS = 6.5
# In each process, at most this many calls can wait for the provider at once. The test sends at most as many
# calls at once, because one process might get all of them.
SLOTS = 16
MARGIN = 3.0  # tolerance in seconds for a busy machine
BUSY = (409, "operation_in_progress")
HOLD = """
import threading, time
from django.db import connection, transaction
from checkout.models import Checkout
is_held = threading.Event()
def hold():
    with transaction.atomic():
        Checkout.objects.locked("{checkout}")
        is_held.set()
        time.sleep({seconds})
    connection.close()
threading.Thread(target=hold, daemon=True).start()
assert is_held.wait(5)
"""


def at_once(asks: Iterable[Callable[[], requests.Response]]) -> list[requests.Response]:
    """Send all requests at the same moment, and return the responses."""
    every = list(asks)
    start = threading.Barrier(len(every))

    def ask(one: Callable[[], requests.Response]) -> requests.Response:
        start.wait(20)
        return within_limits(one)

    with ThreadPoolExecutor(len(every)) as pool:
        return list(pool.map(ask, every))


def within_limits(ask: Callable[[], requests.Response]) -> requests.Response:
    """Repeat the request until the rate limit accepts it, and return the response (rule limit.buckets)."""
    while (answer := ask()).status_code == 429:
        assert refusal(answer) == (429, "rate_limited")
        time.sleep(int(answer.headers["Retry-After"]))
    return answer


def verb(merchant: Merchant, checkout_uuid: str, name: str, **body: str) -> Callable[[], requests.Response]:
    """Return a function that sends a request for this action over its own connection."""
    url = f"{merchant.base_url}/api/merchant/v1/checkouts/{checkout_uuid}/{name}"
    return lambda: requests.post(url, json=body, headers=merchant.headers, timeout=60)


def bank_calls(service: Service, checkout_uuid: str, kind: str) -> list[str]:
    """Return the verdicts of all calls of this kind that the bank has recorded for the checkout."""

    def rows(model: str, field: str, values: set[str]) -> list[dict[str, str]]:
        found = json.loads(service.command("dumpdata", model))
        return [row["fields"] | {"pk": row["pk"]} for row in found if row["fields"][field] in values]

    payments = {row["pk"] for row in rows("payments.payment", "checkout_uuid", {checkout_uuid})}
    charges = {row["pk"] for row in rows("bank.charge", "payment", payments)}
    return [row["verdict"] for row in rows("bank.call", "charge", charges) if row["kind"] == kind]


@pytest.mark.rule("capture.one")
class TestAHundredCaptures:
    @pytest.mark.parametrize(
        "card", [pytest.param(SLOW_CARD, id="slow bank"), pytest.param(CARD, id="quick bank")]
    )
    def test_of_one_checkout_capture_once(self, service: Service, merchant: Merchant, card: str) -> None:
        checkout = merchant.held(card)
        capture = verb(merchant, checkout, "capture")
        answers = at_once([capture] * MANY)
        refused = [answer for answer in answers if answer.status_code != 200]
        assert {refusal(answer) for answer in refused} <= {BUSY}
        assert {answer.headers["Retry-After"] for answer in refused} <= {"1"}
        repeated = at_once([capture] * len(refused)) if refused else []
        told = [answer.json()["data"] for answer in answers + repeated if answer not in refused]
        assert {answer.status_code for answer in repeated} <= {200} and len(told) == MANY
        assert {(seen["status"], seen["captured_at"]) for seen in told} == {
            ("captured", merchant.read(checkout)["captured_at"])
        }
        assert bank_calls(service, checkout, "capture") == ["succeeded"]


@pytest.mark.rule("refund.one")
class TestAHundredRefunds:
    def test_under_one_reference_refund_once(self, service: Service, merchant: Merchant) -> None:
        checkout = merchant.captured()
        answers = at_once([verb(merchant, checkout, "refund", merchant_refund_ref=f"R-{uuid4()}")] * MANY)
        assert Counter(answer.status_code for answer in answers) == {204: 1, 200: MANY - 1}
        told = {answer.json()["data"]["refund_uuid"] for answer in answers if answer.status_code == 200}
        refunded = merchant.advanced(checkout, "refunded", within=20)
        assert [refund["refund_uuid"] for refund in refunded["refunds"]] == list(told)
        assert bank_calls(service, checkout, "refund") == ["succeeded"]

    def test_under_different_references_are_one_refund_and_99_refusals(
        self, service: Service, merchant: Merchant
    ) -> None:
        checkout = merchant.captured()
        refs = [f"R-{number}-{uuid4()}" for number in range(MANY)]
        answers = at_once(verb(merchant, checkout, "refund", merchant_refund_ref=ref) for ref in refs)
        refused = [refusal(answer) for answer in answers if answer.status_code != 204]
        assert refused == [(409, "not_refundable")] * (MANY - 1)
        [accepted] = [ref for ref, answer in zip(refs, answers, strict=True) if answer.status_code == 204]
        refunded = merchant.advanced(checkout, "refunded", within=20)
        assert [refund["merchant_refund_ref"] for refund in refunded["refunds"]] == [accepted]
        assert bank_calls(service, checkout, "refund") == ["succeeded"]


class TestALockedCheckout:
    def test_delays_no_other_checkout(self, service: Service, merchant: Merchant) -> None:
        locked, *others = [merchant.held() for _ in range(21)]
        began = time.monotonic()
        service.command("shell", "--command", HOLD.format(checkout=locked, seconds=HELD_SECONDS))
        with ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(SLOTS) as several:
            waiting = pool.submit(verb(merchant, locked, "capture"))
            answers = list(several.map(lambda other: verb(merchant, other, "capture")(), others))
            assert time.monotonic() - began < HELD_SECONDS, "the lock was over"
            answer = waiting.result()
        assert [other.status_code for other in answers] == [200] * 20
        assert refusal(answer) == BUSY and answer.headers["Retry-After"] == "1"
        assert LOCK_SECONDS < answer.elapsed.total_seconds() < LOCK_SECONDS + MARGIN
        time.sleep(max(0.0, began + HELD_SECONDS - time.monotonic()))
        assert merchant.capture(locked)["status"] == "captured"
