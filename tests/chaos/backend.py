"""A merchant's backend that retries each call until it gets a final response."""

import threading
import time
from typing import Any
from uuid import uuid4

import requests

from payments import operation_queue
from tests import factories
from tests.chaos import histories
from tests.chaos.histories import Call
from tests.journeys.merchant import Credentials, Json

# A payment can be unresolved for MAX_PAYER_WAIT.
PATIENCE = operation_queue.MAX_PAYER_WAIT.total_seconds() + 30
PAUSE = 0.2
AGAIN = {409: {"operation_in_progress", "idempotency_in_progress"}}
EXPECTED_5XX = {502, 503, 504}


class GaveUp(Exception):
    """There was no final response in time."""


class Backend:
    """Calls the service. Several threads can use it at the same time.

    `broken_rules` lists the responses that must never occur. `calls` has every call about a checkout.
    """

    def __init__(self, base_url: str, credentials: Credentials) -> None:
        self.broken_rules: list[str] = []
        self.calls: list[tuple[str, Call]] = []
        self._base_url = base_url
        self._own = threading.local()
        grant = {"grant_type": "client_credentials", **vars(credentials)}
        issued = self._ask("POST", f"{base_url}/oauth/token", grant, {})
        self._authorization = f"Bearer {issued.json()['access_token']}"

    def call(
        self, method: str, path: str, body: Json | None = None, *, key: bool = False
    ) -> requests.Response:
        """Call `/api/<path>` until the response is final. Return this response, or raise GaveUp."""
        headers = {"Authorization": self._authorization}
        if key:
            headers["Idempotency-Key"] = uuid4().hex
        return self._ask(method, f"{self._base_url}/api/{path}", body, headers)

    def _ask(self, method: str, url: str, body: Json | None, headers: dict[str, str]) -> requests.Response:
        end = time.monotonic() + PATIENCE
        began = first = time.monotonic()
        while began < end:
            answer = self._once(method, url, body, headers)
            # An answer that is repeated under the same key can show the status at any moment since the key
            # was first sent.
            asked_at = first if "Idempotency-Key" in headers else began
            self.calls.extend(histories.calls_of(method, url, asked_at, time.monotonic(), answer))
            if answer is not None and self._is_final(answer):
                return answer
            if "Idempotency-Key" in headers and time.monotonic() - first > 3:
                # The process that claimed the previous key might be dead.
                headers, first = headers | {"Idempotency-Key": uuid4().hex}, time.monotonic()
            time.sleep(PAUSE)
            began = time.monotonic()
        raise GaveUp(f"{method} {url}")

    def _once(
        self, method: str, url: str, body: Json | None, headers: dict[str, str]
    ) -> requests.Response | None:
        session = self._session()
        try:
            return session.request(method, url, json=body, headers=headers, timeout=PATIENCE)
        except requests.RequestException:
            session.close()
            return None

    def _session(self) -> requests.Session:
        if not hasattr(self._own, "session"):
            self._own.session = requests.Session()
            self._own.session.trust_env = False
        session: requests.Session = self._own.session
        return session

    def _is_final(self, answer: requests.Response) -> bool:
        try:
            code = answer.json().get("error", {}).get("code", "") if answer.content else ""
        except (requests.JSONDecodeError, AttributeError):
            code = "no JSON"
        if answer.status_code >= 500:
            if answer.status_code not in EXPECTED_5XX:
                self.broken_rules.append(f"{answer.status_code} {code} from {answer.request.path_url}")
            return False
        return code not in AGAIN.get(answer.status_code, set())

    def create(self) -> str:
        order = factories.order(merchant_order_id=f"A-{uuid4().hex[:8]}")
        made = self.call("POST", "merchant/v1/checkouts", order, key=True)
        assert made.status_code == 201, made.text
        return str(made.json()["data"]["checkout_uuid"])

    def read(self, checkout_uuid: str) -> Any:
        return self.call("GET", f"merchant/v1/checkouts/{checkout_uuid}").json()["data"]

    def read_list(self) -> None:
        """Read the list of the newest checkouts."""
        self.call("GET", "merchant/v1/checkouts?limit=10")

    def pay(self, checkout_uuid: str, body: Json) -> str:
        """Pay as the customer would. Retry until the payment ends, and return the checkout's status."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = self.call("POST", f"sandbox/v1/checkouts/{checkout_uuid}/pay", body)
            seen = self.read(checkout_uuid)
            if seen["status"] != "created" or answer.status_code == 402:
                return str(seen["status"])
            time.sleep(PAUSE)
        raise GaveUp(f"payment of {checkout_uuid}")

    def pay_share(self, checkout_uuid: str) -> None:
        """Pay a share as the mate would. Retry until the share is paid or can no longer be paid."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = self.call("POST", f"sandbox/v1/checkouts/{checkout_uuid}/pay-share", {})
            if not answer.ok or answer.json()["data"]["status"] in ("paid", "reimbursed"):
                return
            time.sleep(PAUSE)
        raise GaveUp(f"share of {checkout_uuid}")

    def verb(self, checkout_uuid: str, verb: str, body: Json, *, key: bool = False) -> requests.Response:
        return self.call("POST", f"merchant/v1/checkouts/{checkout_uuid}/{verb}", body, key=key)

    def advance(self, checkout_uuid: str, seconds: int) -> requests.Response:
        return self.call("POST", f"sandbox/v1/checkouts/{checkout_uuid}/advance", {"seconds": seconds})
