"""A merchant's backend, which uses the public API over HTTP.

It also uses the sandbox helpers, to pay as a customer and to let time pass.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

import requests

from tests import factories
from tests.journeys import polling

Json = dict[str, Any]
# Timeout of the HTTP client in seconds. If a test needs a faster response, it measures the time itself.
PATIENCE = 20.0


@dataclass(frozen=True)
class Credentials:
    """The id and secret of an API client, as create_merchant prints them."""

    client_id: str
    client_secret: str


class Merchant:
    """A merchant's backend with its own token.

    Methods such as `read`, `pay` and `capture` return the `data` of the response. They fail if the service
    refuses the request.
    """

    def __init__(self, base_url: str, credentials: Credentials, ca: str = "") -> None:
        self.base_url, self.credentials = base_url, credentials
        self.owner = ("", "")  # the email and password of the merchant's portal user
        self.longest = 0.0  # the duration of the slowest call, in seconds
        self._http = requests.Session()
        self._http.trust_env, self._http.verify = False, ca or True
        grant = {"grant_type": "client_credentials", **vars(credentials)}
        issued = self._http.post(f"{base_url}/oauth/token", json=grant, timeout=PATIENCE)
        assert issued.status_code == 200, issued.text
        self._http.headers["Authorization"] = f"Bearer {issued.json()['access_token']}"

    @property
    def headers(self) -> dict[str, str]:
        """Return the authorization header, for requests that a test sends without this object."""
        return {"Authorization": str(self._http.headers["Authorization"])}

    def call(self, method: str, path: str, body: Json | None = None) -> requests.Response:
        """Send a request to `/api/<path>`, and return the response, even if it is an error."""
        began = time.monotonic()
        answer = self._http.request(method, f"{self.base_url}/api/{path}", json=body, timeout=PATIENCE)
        self.longest = max(self.longest, time.monotonic() - began)
        return answer

    def post(self, path: str, body: Json | None = None) -> requests.Response:
        return self.call("POST", f"merchant/v1/{path}", body)

    def create(self, **changes: Any) -> str:
        """Create an order of £90.00, and return its checkout_uuid."""
        order = factories.order(merchant_order_id=f"A-{uuid4().hex[:8]}", **changes)
        return str(_content(self.post("checkouts", order), 201)["checkout_uuid"])

    def read(self, checkout_uuid: str) -> Json:
        return _content(self.call("GET", f"merchant/v1/checkouts/{checkout_uuid}"))

    def pay(self, checkout_uuid: str, card: str = "4242424242424242") -> Json:
        return _content(self.call("POST", f"sandbox/v1/checkouts/{checkout_uuid}/pay", {"card": card}))

    def advance(self, checkout_uuid: str, seconds: int) -> Json:
        return _content(
            self.call("POST", f"sandbox/v1/checkouts/{checkout_uuid}/advance", {"seconds": seconds})
        )

    def capture(self, checkout_uuid: str) -> Json:
        return _content(self.post(f"checkouts/{checkout_uuid}/capture", {}))

    def cancel(self, checkout_uuid: str) -> Json:
        return _content(self.post(f"checkouts/{checkout_uuid}/cancel", {}))

    def refund(self, checkout_uuid: str) -> str:
        """Request a refund, and return its reference."""
        ref = f"R-{uuid4().hex[:8]}"
        answer = self.post(f"checkouts/{checkout_uuid}/refund", {"merchant_refund_ref": ref})
        assert (answer.status_code, answer.content) == (204, b""), answer.text
        return ref

    def subscribe(self, url: str, *event_types: str) -> str:
        """Subscribe a URL to these event types, or to all if none is given. Return the signing secret."""
        asked = {"url": url, "event_types": list(event_types) or ["*"]}
        return str(_content(self.post("webhooks/subscription", asked), 201)["signing_secret"])

    def rotate(self, *, revoke_previous: bool = False) -> Json:
        return _content(self.post("webhooks/secret/rotate", {"revoke_previous": revoke_previous}))

    def log_of(self, event_id: str, *, length: int, within: float = 5) -> list[Json]:
        """Wait until the delivery log has `length` attempts to deliver an event. Return them, newest first."""

        def logged() -> list[Json] | None:
            found = _content(self.call("GET", f"merchant/v1/webhooks/deliveries?event_id={event_id}"))
            entries: list[Json] = found["deliveries"]
            return entries if len(entries) >= length else None

        return polling.until(logged, within=within, what=f"attempt {length} in the delivery log")

    def held(self, card: str = "4242424242424242") -> str:
        """Create and pay a checkout, and return its checkout_uuid. Its money is held, but not captured."""
        checkout_uuid = self.create()
        assert self.pay(checkout_uuid, card)["status"] == "authorized"
        return checkout_uuid

    def captured(self, card: str = "4242424242424242") -> str:
        checkout_uuid = self.held(card)
        self.capture(checkout_uuid)
        return checkout_uuid

    def awaited(self, checkout_uuid: str, status: str, *, within: float) -> Json:
        """Wait until the checkout has the status, and return the checkout."""

        def moved() -> Json | None:
            seen = self.read(checkout_uuid)
            return seen if seen["status"] == status else None

        return polling.until(moved, within=within, what=f"the checkout {status}")

    def advanced(self, checkout_uuid: str, status: str, *, within: float = 5) -> Json:
        """Advance the checkout's time in steps of 5 s until the checkout has the status, and return the checkout."""

        def moved() -> Json | None:
            answer = self.call("POST", f"sandbox/v1/checkouts/{checkout_uuid}/advance", {"seconds": 5})
            if answer.status_code == 409 and answer.json()["error"]["code"] == "operation_in_progress":
                return None
            seen = _content(answer)
            return seen if seen["status"] == status else None

        return polling.until(moved, within=within, what=f"the checkout {status}")

    def at_rest(self, checkout_uuid: str, *, within: float = 5) -> Json:
        """Wait until the checkout has no open card operation, and return it."""

        def rests() -> Json | None:
            seen = self.read(checkout_uuid)
            return None if "pending_operation" in seen else seen

        return polling.until(rests, within=within, what="the end of the card operation")

    @contextmanager
    def answered_within(self, seconds: float) -> Iterator[None]:
        """Fail unless each call in the block gets its response in less than `seconds`."""
        self.longest = 0.0
        yield
        assert self.longest < seconds, f"A call took {self.longest:.1f} s."


def _content(answer: requests.Response, status: int = 200) -> Json:
    assert answer.status_code == status, f"{answer.request.method} {answer.url}: {answer.text}"
    content: Json = answer.json()["data"]
    return content


def refusal(answer: requests.Response) -> tuple[int, str]:
    """Return the HTTP status and the error code of a response."""
    return answer.status_code, answer.json()["error"]["code"]


def unix(timestamp: str) -> float:
    """Return the API's timestamp as seconds since 1970."""
    return datetime.fromisoformat(timestamp).timestamp()


def seconds_until(timestamp: str) -> int:
    """Return the seconds until the timestamp, rounded up, and at least 1."""
    return max(1, math.ceil(unix(timestamp) - time.time()))
