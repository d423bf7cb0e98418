"""Buyers who place orders at a sandbox under load.

Each buyer creates, pays, captures and reads orders in a loop. `python -m tests.config.deploy.buyers URL` reads an API
client as JSON from the standard input, and buys until the input ends. It then prints one line of JSON with the result
of each order and the answer to each failed call.
"""

import json
import sys
import threading
import time
import uuid
from collections import Counter
from typing import Any, NamedTuple

import requests
import urllib3

BUYERS = 4
# For how many seconds a buyer repeats a failed call, if it repeats calls.
PATIENCE = 120.0
MERCHANT, SANDBOX = "/api/merchant/v1/checkouts", "/api/sandbox/v1/checkouts"


class Outcome(NamedTuple):
    """`captured` has the ids of the captured orders. `failed` counts failed calls by their answer."""

    captured: list[str]
    failed: dict[str, int]
    given_up: list[str]


class Backend:
    """A merchant's backend. If `repeats` is true, the backend repeats a failed call under the same idempotency key."""

    def __init__(self, url: str, client: dict[str, str], *, repeats: bool) -> None:
        self._url, self._repeats = url, repeats
        self.failed: Counter[str] = Counter()
        grant = {"grant_type": "client_credentials"} | client
        self._token = self._until_it_answers("POST", "/oauth/token", json=grant)["access_token"]

    def buy(self, number: str) -> str:
        """Create, pay and capture an order, and return its id.

        Raise `LookupError` if a call fails, or if the order is not captured afterwards.
        """
        order = self._call("POST", MERCHANT, _order(number))["checkout_uuid"]
        self._call("POST", f"{SANDBOX}/{order}/pay", {}, or_status=409)  # an earlier call may have paid
        self._call("POST", f"{MERCHANT}/{order}/capture", {})
        status = self._call("GET", f"{MERCHANT}/{order}")["status"]
        if status != "captured":
            raise LookupError(f"{order} is {status}")
        return str(order)

    def _call(self, method: str, path: str, body: Any = None, or_status: int = 200) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Idempotency-Key": str(uuid.uuid4())}
        answer = self._until_it_answers(method, path, or_status, json=body, headers=headers)
        return answer.get("data")

    def _until_it_answers(self, method: str, path: str, or_status: int = 200, **more: Any) -> Any:
        ends = time.monotonic() + PATIENCE
        while True:
            try:
                answer = requests.request(method, f"{self._url}{path}", verify=False, timeout=30, **more)
                if answer.ok or answer.status_code == or_status:
                    return answer.json()
                what = f"{method} {path.rpartition('/')[2][-8:]}: {answer.status_code} {answer.text[:200]}"
            except requests.RequestException as error:
                what = f"{method}: {type(error).__name__}"
            self.failed[what] += 1
            if not self._repeats or time.monotonic() > ends:
                raise LookupError(what)
            time.sleep(0.2)


def _order(number: str) -> dict[str, Any]:
    line = {"item_ref": "1", "name": "Ticket", "quantity": 1, "unit_price": 100, "currency": "GBP"}
    pages = {"return_url": "https://acme.example/thanks", "cancel_url": "https://acme.example/basket"}
    return {"merchant_order_id": number, "total_amount": 100, "currency": "GBP", "items": [line], **pages}


def buy_until_the_input_ends(url: str, client: dict[str, str], *, repeats: bool) -> Outcome:
    over = threading.Event()
    outcome = Outcome([], {}, [])
    backends = [Backend(url, client, repeats=repeats) for _ in range(BUYERS)]

    def buy(buyer: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            try:
                outcome.captured.append(backends[buyer].buy(f"{buyer}-{number}"))
            except LookupError as error:
                outcome.given_up.append(str(error))

    threads = [threading.Thread(target=buy, args=(buyer,)) for buyer in range(BUYERS)]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join()
    failed = sum((backend.failed for backend in backends), Counter())
    return outcome._replace(failed=dict(failed))


if __name__ == "__main__":
    urllib3.disable_warnings()
    given = json.loads(sys.stdin.readline())
    print(json.dumps(buy_until_the_input_ends(sys.argv[1], given, repeats="--repeat" in sys.argv)._asdict()))
