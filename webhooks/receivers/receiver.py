"""Verifies each webhook, captures the held checkout, and answers. Run it with: python3 receiver.py"""
# It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET and SIGNING_SECRETS (two secrets
# while you rotate). To use a port other than 3000, set PORT.

import hmac
import json
import os
import re
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

NEEDED = ("CHECKOUT_BASE_URL", "CHECKOUT_CLIENT_ID", "CHECKOUT_CLIENT_SECRET", "SIGNING_SECRETS")
for variable in NEEDED:
    if not os.environ.get(variable, "").strip():
        raise SystemExit(f"Set {variable} (see Quick start and Receivers in the documentation).")
BASE_URL, CLIENT_ID, CLIENT_SECRET, SECRETS = (os.environ[variable] for variable in NEEDED)
CLIENT = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
PORT = int(os.environ.get("PORT") or 3000)
ORDERS = "/api/merchant/v1/checkouts"
token: dict[str, Any] = {"until": 0}


def ago(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds))


STARTED = ago(120)  # a hold lasts two minutes, so the first catch-up misses no held checkout


class Refused(Exception):
    """The delivery is answered with 400; the message is one of the four reasons."""


def verify(header: str, body: bytes) -> Any:
    entries = [entry.partition("=") for entry in header.split(",")]
    times = [value for name, _, value in entries if name == "t"]
    signatures = [value.encode() for name, _, value in entries if name == "v1"]
    is_whole = all(equals for _, equals, _ in entries) and len(times) == 1 and signatures
    if not is_whole or not re.fullmatch("[0-9]{1,12}", times[0]):
        raise Refused("malformed_header")
    message = times[0].encode() + b"." + body
    secrets = SECRETS.split()  # no empty secrets: anyone can sign with an empty secret
    expected = [hmac.digest(secret.encode(), message, "sha256").hex().encode() for secret in secrets]
    if not sum(hmac.compare_digest(one, other) for one in signatures for other in expected):
        raise Refused("no_matching_signature")
    if abs(int(time.time()) - int(times[0])) > 300:
        raise Refused("timestamp_out_of_tolerance")
    with suppress(ValueError, RecursionError):
        if isinstance(event := json.loads(body.decode()), dict):
            return event
    raise Refused("invalid_json")


def call(method: str, path: str, body: object, seconds: float, **headers: str) -> Any:
    content = None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **headers}
    with urlopen(Request(BASE_URL + path, content, sent, method=method), timeout=seconds) as answer:
        return json.load(answer)


def authorized(method: str, path: str, body: object = None, seconds: float = 8) -> Any:
    if time.time() > token["until"]:  # a token is reused until shortly before it expires
        token.update(call("POST", "/oauth/token", {"grant_type": "client_credentials", **CLIENT}, 3))
        token["until"] = time.time() + token["expires_in"] - 60
    try:
        return call(method, path, body, seconds, Authorization=f"Bearer {token['access_token']}")
    except HTTPError as refused:
        token["until"] = 0 if refused.code == 401 else token["until"]
        raise


def try_capture(checkout: str, seconds: float = 8) -> tuple[bool | None, float]:
    """Return True (captured), False (the hold is over) or None (not known yet), and the seconds to wait."""
    try:
        authorized("POST", f"{ORDERS}/{checkout}/capture", {}, seconds)
        return True, 0
    except HTTPError as refused:
        answer = refused.read().decode(errors="replace")
        print("the capture was answered", refused.code, answer, flush=True)
        wait = refused.headers.get("Retry-After", "1")
        return False if '"not_capturable"' in answer else None, int(wait) if wait.isdigit() else 1
    except (OSError, ValueError) as silence:
        print("the capture was not answered:", silence, flush=True)
        return None, 1


def capture(checkout: str) -> bool:
    """Return whether the money has moved. This takes at most 12 s; a webhook must be answered within 15 s."""
    end = time.monotonic() + 12
    while True:
        moved, wait = try_capture(checkout, min(8, end - time.monotonic()))
        if moved is not None:
            return moved
        if time.monotonic() + wait + 1 > end:
            raise OSError(f"{checkout} is not captured yet")
        time.sleep(wait)  # a second try is safe: the service captures only once


def fulfil(checkout: str) -> None:
    """Mark the order as paid. A second call for the same order changes nothing. Do slow work elsewhere."""
    Path("paid", checkout).touch()


def catch_up() -> None:
    """Capture held checkouts; fulfil those captured since the cursor. Store the cursor with your orders."""
    page = authorized("GET", f"{ORDERS}?status=authorized&limit=200")["data"]
    held = page["checkouts"]
    while page["next_cursor"]:  # the newest come first, so the hold that ends soonest is on the last page
        page = authorized("GET", f"{ORDERS}?status=authorized&limit=200&cursor={page['next_cursor']}")["data"]
        held += page["checkouts"]
    for one in sorted(held, key=lambda one: one["capture_before"]):
        is_at_work = "pending_operation" in one or one["authorized_at"] > ago(10)  # its webhook captures it
        if not is_at_work and try_capture(one["checkout_uuid"])[0]:
            fulfil(one["checkout_uuid"])
    kept, is_full = Path("cursor"), True
    while is_full:
        start = f"cursor={kept.read_text()}" if kept.exists() else f"updated_after={STARTED}"
        page = authorized("GET", f"{ORDERS}?sort=updated_at&limit=200&{start}")["data"]
        for captured in [one for one in page["checkouts"] if one["status"] == "captured"]:
            fulfil(captured["checkout_uuid"])
        kept.write_text(page["next_cursor"])
        is_full = len(page["checkouts"]) == 200


def catch_up_for_ever() -> None:
    while True:
        time.sleep(5)
        try:
            catch_up()
        except Exception as failure:
            print("could not catch up:", failure, flush=True)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 1 << 20))
        try:
            event = verify(self.headers.get("X-Service-Signature", ""), body)
            marker, data = Path("seen", str(event.get("id"))), event.get("data", {})
            if not marker.exists():  # two deliveries can pass this check at the same time, which does no harm
                if event.get("type") == "checkout.authorized" and capture(data["checkout_uuid"]):
                    fulfil(data["checkout_uuid"])
                marker.touch()
            self.answer(200, "ok")
        except Refused as reason:  # the sender is unknown: do not store or log the body
            self.answer(400, str(reason))
        except Exception as failure:
            print(failure, flush=True)
            self.answer(500, "send it again")  # a 4xx would end the retries, and the hold would be lost

    def answer(self, status: int, words: str) -> None:
        print("a delivery is answered", status, words, flush=True)
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(words)))
        self.end_headers()
        self.wfile.write(words.encode())


for table in ("seen", "paid"):  # in your service, use tables, each with a unique column
    Path(table).mkdir(exist_ok=True)
Thread(target=catch_up_for_ever, daemon=True).start()
server = ThreadingHTTPServer(("127.0.0.1", PORT), Receiver)
print(f"listening on http://127.0.0.1:{PORT}", flush=True)
server.serve_forever()
