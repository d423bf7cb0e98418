#!/usr/bin/env python3
"""Brings webhook events to a server on your own machine while you build it. Needs only Python 3.9 or later.

    python3 listen.py --base-url https://sandbox.example --forward http://localhost:3000/webhooks

It asks for new events each second and posts them in the same way as real deliveries. It signs them with a new
secret, which it prints. Your endpoint on the internet still gets its own deliveries. Rules listen.*
"""

from __future__ import annotations

import argparse
import base64
import calendar
import contextlib
import hmac
import http.client
import ipaddress
import json
import os
import re
import secrets
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

SCOPE = "webhooks:read"
TEST_ENVIRONMENTS = ("local", "sandbox")
SECRET_PREFIX = "whsec_"
POLL_SECONDS, LONGEST_PAUSE, PAGE = 1.0, 60.0, 200
API_SECONDS, ATTEMPT_SECONDS = 10.0, 15.0
SLOTS = 20  # the maximum number of attempts at the same time
MAX_ANSWER, MAX_READ = 16 * 1024, 16 * 1024 * 1024  # maximum bytes in your server's answer, and in the API's
# The schedule of attempts is like that of real deliveries, but shorter. For an event about a hold, it gives the
# seconds after the event's arrival. For any other event, it gives the seconds between two attempts.
URGENT, HOLD_SECONDS, MIN_GAP = "checkout.authorized", 120.0, 3.0
URGENT_STARTS, PATIENT_GAPS = (0.0, 5.0, 25.0, 75.0), (5.0, 30.0, 120.0, 600.0)
ENVIRONMENT = {
    "base-url": ("CHECKOUT_BASE_URL", "the service's address, as its docs say it"),
    "client-id": ("CHECKOUT_CLIENT_ID", f"of a client that has only the scope {SCOPE}"),
    "client-secret": ("CHECKOUT_CLIENT_SECRET", "better in the environment: others here can't read it there"),
}
HTTP_ERRORS = (OSError, http.client.HTTPException)


class Stop(Exception):
    """Raised if the program cannot continue. The message names the remedy."""


class NoAnswer(Exception):
    """Raised if the API did not answer. The next request should wait for `pause` seconds."""

    def __init__(self, why: str, pause: float = 0.0) -> None:
        super().__init__(why)
        self.pause = pause


# Signatures


def generate_secret() -> str:
    """Return a new signing secret in the service's format."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def build_headers(secret: str, event: dict[str, Any], body: bytes, attempt: int, at: int) -> dict[str, str]:
    """Return the headers of an attempt: the service's own headers, and those of Standard Webhooks."""
    key, message = base64.b64decode(secret[len(SECRET_PREFIX) :]), f"{at}.".encode() + body
    standard = hmac.new(key, f"{event['id']}.".encode() + message, "sha256").digest()
    return {
        "Content-Type": "application/json",
        "User-Agent": "MerchantCheckout-Webhooks/1",
        "X-Service-Event-Id": event["id"],
        "X-Service-Event-Type": event["type"],
        "X-Service-Delivery-Attempt": str(attempt),
        "X-Service-Timestamp": str(at),
        "X-Service-Signature": f"t={at},v1={hmac.new(secret.encode(), message, 'sha256').hexdigest()}",
        "webhook-id": event["id"],
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(standard).decode()}",
    }


# Addresses


def parse_address(name: str, url: str) -> urllib.parse.SplitResult:
    """Return the parts of an address. Raises Stop for an address that parsers can read in different ways."""
    with contextlib.suppress(ValueError):
        parts = urllib.parse.urlsplit(url)
        is_plain = re.fullmatch(r"[!-\[\]-~]+", url) and parts.scheme in ("http", "https") and parts.hostname
        if is_plain and "@" not in parts.netloc and parts.port != 0 and not parts.fragment:
            return parts
    raise Stop(f"{name} must be a plain address, such as http://localhost:3000/webhooks.")


def is_loopback(host: str | None) -> bool:
    """Return whether a host name or address is this machine."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host or "").is_loopback
    return host == "localhost"


class Target:
    """Your server. It must be on this machine."""

    def __init__(self, url: str) -> None:
        """Parse the server's address. Raises Stop if it is not http on this machine."""
        parts = parse_address("--forward", url)
        if parts.scheme != "http" or not is_loopback(parts.hostname):
            raise Stop("--forward must be http on this machine: localhost, 127.0.0.1 or [::1], nowhere else.")
        self.host, self.port = parts.hostname or "", parts.port or 80
        self.path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def post(self, body: bytes, request_headers: dict[str, str]) -> int:
        """Post once and return the status. Redirects are not followed.

        Raises one of HTTP_ERRORS if no status arrives in time.
        """
        connection = http.client.HTTPConnection(self.host, self.port)
        connection.sock = self._connect()
        # A timer is necessary, because a socket's timeout starts again with each byte of a slow answer.
        ends_at = time.monotonic() + ATTEMPT_SECONDS
        ending = threading.Timer(ATTEMPT_SECONDS, shut_down, [connection.sock])
        ending.daemon = True
        ending.start()
        try:
            connection.request("POST", self.path, body, request_headers)
            answer = connection.getresponse()
            answer.read(MAX_ANSWER)
            if time.monotonic() < ends_at:
                return answer.status
        except HTTP_ERRORS:
            if time.monotonic() < ends_at:
                raise
        finally:
            ending.cancel()
            connection.close()
        raise TimeoutError

    def _connect(self) -> socket.socket:
        """Return a connection to the server. Check its addresses again, because they might have changed."""
        failed = OSError("no address")
        for family, kind, _, _, address in socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM):
            if not is_loopback(str(address[0])):
                raise OSError(f"{self.host} is not this machine")
            connection = socket.socket(family, kind)
            connection.settimeout(ATTEMPT_SECONDS)
            try:
                connection.connect(address)
                return connection
            except OSError as error:
                connection.close()
                failed = error
        raise failed


def shut_down(connection: socket.socket) -> None:
    """Shut down a connection on which another thread waits."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


# The API


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A handler that does not follow redirects, so that secrets and tokens reach only the intended address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Api:
    """A client for the service's API. It renews its token in time."""

    def __init__(self, base_url: str, client_id: str, client_secret: str) -> None:
        """Keep the credentials. Raises Stop if the address would receive them unencrypted."""
        parts = parse_address("--base-url", base_url)
        is_here = is_loopback(parts.hostname)
        if parts.scheme != "https" and not is_here:
            raise Stop("--base-url must be https, because the client's secret is sent there.")
        self.base_url = base_url.rstrip("/")
        self._grant = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": client_secret,
        }
        self._token, self._renew_at = "", 0.0
        self._ahead = 0.0  # how many seconds the service's clock is ahead of this machine's clock
        self._opener = urllib.request.build_opener(
            NoRedirects(), *([urllib.request.ProxyHandler({})] if is_here else [])
        )

    def now(self) -> float:
        """Return the service's Unix time."""
        return time.time() + self._ahead

    def read_environment(self) -> str:
        """Return the service's environment. Raises Stop in production, before any secret is sent there."""
        try:
            environment = str(self._request("/api/schema")["info"]["x-environment"])
        except (urllib.error.HTTPError, KeyError, TypeError):
            raise Stop(f"{self.base_url} is not the API of this service. Look at --base-url.") from None
        if environment not in TEST_ENVIRONMENTS:
            raise Stop(f"{self.base_url} is {environment}. Listening is for the sandbox, and for `make run`.")
        return environment

    def list_events(self, **query: str) -> dict[str, Any]:
        """Return a page from the event feed. Raises Stop or NoAnswer."""
        path = f"/api/merchant/v1/events?{urllib.parse.urlencode(query)}"
        for tries_left in (1, 0):
            try:
                page: dict[str, Any] = self._request(path, Authorization=f"Bearer {self._fresh_token()}")[
                    "data"
                ]
                return page
            except urllib.error.HTTPError as refused:
                self._token = ""
                if refused.code != 401 or not tries_left:
                    raise Stop(f"The API refuses to list events: {error_message(refused)}") from None
        raise AssertionError("unreachable")

    def _fresh_token(self) -> str:
        if not self._token or time.monotonic() > self._renew_at:
            try:
                granted = self._request("/oauth/token", self._grant)
            except urllib.error.HTTPError as refused:
                raise Stop(f"No token for this client: {error_message(refused)}") from None
            check_scopes(granted["scope"])
            self._token = granted["access_token"]
            self._renew_at = time.monotonic() + granted["expires_in"] - 60
        return self._token

    def _request(self, path: str, body: dict[str, str] | None = None, **more_headers: str) -> Any:
        """Return the answer to a request.

        Raises HTTPError if the API refuses the request, and NoAnswer if another attempt can help.
        """
        content = None if body is None else json.dumps(body).encode()
        request_headers = {"Content-Type": "application/json", "User-Agent": "listen.py", **more_headers}
        # `parse_address` has checked that the address is http or https.
        request = urllib.request.Request(self.base_url + path, content, request_headers)  # noqa: S310
        try:
            with self._opener.open(request, timeout=API_SECONDS) as answer:
                if answer.headers["Date"]:
                    self._ahead = parsedate_to_datetime(answer.headers["Date"]).timestamp() - time.time()
                return json.loads(answer.read(MAX_READ))
        except urllib.error.HTTPError as refused:
            if refused.code in (408, 429) or refused.code >= 500:
                raise NoAnswer(f"HTTP {refused.code}", retry_after_seconds(refused)) from None
            raise
        except (*HTTP_ERRORS, ValueError) as error:
            raise NoAnswer(describe_error(error)) from None


def check_scopes(scopes: str) -> None:
    """Raise Stop unless the client has exactly SCOPE. Its secret is on a laptop, so it must not allow more."""
    extra_scopes = sorted({*scopes.split()} - {SCOPE})
    remedy = f"Make one in the portal, under Keys, that has only the scope {SCOPE}."
    if extra_scopes:
        raise Stop(f"This client may do more than listen: {', '.join(extra_scopes)}. {remedy}")
    if not scopes.split():
        raise Stop(f"This client may do less than listen: it lacks {SCOPE}. {remedy}")


def retry_after_seconds(refused: urllib.error.HTTPError) -> float:
    """Return the seconds in Retry-After, at most a minute."""
    seconds = refused.headers.get("Retry-After", "0")
    return min(float(seconds), LONGEST_PAUSE) if seconds.isdecimal() else 0.0


def error_message(refused: urllib.error.HTTPError) -> str:
    """Return the message of an error response, or its status if it has no message."""
    with contextlib.suppress(*HTTP_ERRORS, ValueError, KeyError, TypeError):
        content = json.loads(refused.read(MAX_ANSWER))
        error = content["error"]
        return str(error["message"] if isinstance(error, dict) else content.get("error_description", error))
    return f"HTTP {refused.code}"


def describe_error(error: BaseException) -> str:
    """Return why there is no answer."""
    why = getattr(error, "reason", error)
    if isinstance(why, TimeoutError):
        return "timed out"
    return str(getattr(why, "strerror", None) or why or type(why).__name__).lower()


# Deliveries


class Delivery(NamedTuple):
    """An event on its way to your server. All times are values of `time.monotonic()`."""

    event: dict[str, Any]
    arrived_at: float
    ends_at: float  # no attempt starts at this time or later
    due_at: float
    attempt: int = 1


def new_delivery(event: dict[str, Any], service_time: float) -> Delivery:
    """Return the delivery for an event that was just listed."""
    now, ends_at = time.monotonic(), float("inf")
    if event["type"] == URGENT:
        created_at = calendar.timegm(time.strptime(event["created_at"][:19], "%Y-%m-%dT%H:%M:%S"))
        ends_at = now + HOLD_SECONDS - (service_time - created_at)
    return Delivery(event, now, ends_at, due_at=now)


def plan_next_attempt(delivery: Delivery, status: int | None, now: float) -> Delivery | None:
    """Return the next attempt after a failed one, or None after the last one.

    The rules are the same as in the service, with shorter times.
    """
    if delivery.event["type"] == URGENT:
        may_change = status is None or status in (408, 429) or 500 <= status < 600
        if not may_change or delivery.attempt >= len(URGENT_STARTS):
            return None
        due_at = max(delivery.arrived_at + URGENT_STARTS[delivery.attempt], now + MIN_GAP)
    elif delivery.attempt > len(PATIENT_GAPS):
        return None
    else:
        due_at = now + PATIENT_GAPS[delivery.attempt - 1]
    if due_at >= delivery.ends_at:
        return None
    return delivery._replace(due_at=due_at, attempt=delivery.attempt + 1)


class Forwarding:
    """Sends due events, several at a time, and prints each answer."""

    def __init__(self, target: Target, secret: str) -> None:
        self._target, self._secret = target, secret
        self._waiting: list[Delivery] = []
        self._changed = threading.Condition()
        for _ in range(SLOTS):
            threading.Thread(target=self._run, daemon=True).start()

    def add(self, delivery: Delivery) -> None:
        with self._changed:
            self._waiting.append(delivery)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            self._send(self._take_due())

    def _take_due(self) -> Delivery:
        with self._changed:
            while True:
                first = min(self._waiting, key=lambda delivery: delivery.due_at, default=None)
                pause = None if first is None else first.due_at - time.monotonic()
                if first is not None and first.due_at <= time.monotonic():
                    self._waiting.remove(first)
                    return first
                self._changed.wait(pause)

    def _send(self, delivery: Delivery) -> None:
        line = f"{delivery.event['type']}  {delivery.event['id']}  attempt {delivery.attempt}"
        began = time.monotonic()
        if began >= delivery.ends_at:
            print_line(f"{line}  not sent: the hold is over")
            return
        status, answer = self._attempt(delivery)
        now = time.monotonic()
        line = f"{line}  {answer}  {1000 * (now - began):.0f} ms"
        if status is not None and 200 <= status < 300:
            print_line(line)
        elif next_delivery := plan_next_attempt(delivery, status, now):
            print_line(f"{line}  again in {next_delivery.due_at - now:.0f} s")
            self.add(next_delivery)
        else:
            print_line(f"{line}  given up")

    def _attempt(self, delivery: Delivery) -> tuple[int | None, str]:
        body = json.dumps(delivery.event, separators=(",", ":"), ensure_ascii=False).encode()
        request_headers = build_headers(
            self._secret, delivery.event, body, delivery.attempt, int(time.time())
        )
        try:
            status = self._target.post(body, request_headers)
        except HTTP_ERRORS as error:
            return None, f"no answer: {describe_error(error)}"
        return status, str(status)


_printing = threading.Lock()


def print_line(words: str) -> None:
    with _printing:
        print(time.strftime("%H:%M:%S"), words.encode("ascii", "replace").decode(), flush=True)


# The program


def listen(api: Api, forwarding: Forwarding, **query: str) -> None:
    """Request new events each second, and forward them. Never return. Raises Stop."""
    while True:
        page = repeat_until_answered(api.list_events, **query, limit=str(PAGE))
        for entry in page["events"]:
            forwarding.add(new_delivery(entry["event"], api.now()))
        query = {"cursor": page["next_cursor"]}
        if len(page["events"]) < PAGE:
            time.sleep(POLL_SECONDS)


def repeat_until_answered(request: Any, **query: str) -> Any:
    """Repeat a request until the API answers. Print when it stops answering, and when it answers again."""
    pause = 0.0
    while True:
        try:
            answer = request(**query)
        except NoAnswer as error:
            if not pause:
                print_line(f"The API does not answer: {error}. Asking again.")
            pause = max(error.pause, min(10.0, 2 * pause or 1.0))
            time.sleep(pause)
            continue
        if pause:
            print_line("The API answers again.")
        return answer


def read_options() -> argparse.Namespace:
    """Return the options from the command line or the environment."""
    parser = argparse.ArgumentParser(description="Brings webhook events to a server on your own machine.")
    for name, (variable, meaning) in ENVIRONMENT.items():
        default = os.environ.get(variable)
        parser.add_argument(
            f"--{name}", default=default, required=not default, help=f"{meaning}; or {variable}"
        )
    parser.add_argument(
        "--forward", required=True, help="your server, such as http://localhost:3000/webhooks"
    )
    return parser.parse_args()


def run(options: argparse.Namespace) -> None:
    """Check the options, print the addresses and the signing secret, and listen. Raises Stop."""
    target, api = Target(options.forward), Api(options.base_url, options.client_id, options.client_secret)
    environment = repeat_until_answered(api.read_environment)
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(api.now()))
    repeat_until_answered(api.list_events, limit="1")  # raises Stop for wrong credentials
    secret = generate_secret()
    print_line(
        f"Listening to {api.base_url} ({environment}), forwarding to {options.forward}. Ctrl-C ends it."
    )
    print_line(f"Signing secret: {secret}")
    listen(api, Forwarding(target, secret), created_after=since)


def main() -> int:
    """Return the exit code: 0 after Ctrl-C, 2 if the program cannot continue."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(read_options())
    except Stop as stopped:
        print(stopped, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        _printing.acquire(timeout=1)  # no thread prints after this
        print("\nNo longer listening.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
