"""Verifies each webhook, captures what is held, answers: python3 receiver.py, with these variables set."""
# CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET; SIGNING_SECRETS, two while you rotate; PORT.

import hmac
import json
import os
import re
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

BASE_URL, SECRETS = os.environ["CHECKOUT_BASE_URL"], os.environ["SIGNING_SECRETS"].split()
CLIENT = {name: os.environ[f"CHECKOUT_{name.upper()}"] for name in ("client_id", "client_secret")}
token: dict[str, Any] = {"until": 0}


class Refused(Exception):
    """The delivery is answered with 400; the words are one of the four reasons."""


def verify(header: str, body: bytes) -> Any:
    entries = [entry.partition("=") for entry in header.split(",")]
    times = [value for name, _, value in entries if name == "t"]
    given = [value.encode() for name, _, value in entries if name == "v1"]
    is_whole = all(equals for _, equals, _ in entries) and len(times) == 1 and given
    if not is_whole or not re.fullmatch("[0-9]{1,12}", times[0]):
        raise Refused("malformed_header")
    message = times[0].encode() + b"." + body
    wanted = [hmac.digest(secret.encode(), message, "sha256").hex().encode() for secret in SECRETS]
    if not sum(hmac.compare_digest(one, other) for one in given for other in wanted):
        raise Refused("no_matching_signature")
    if abs(int(time.time()) - int(times[0])) > 300:
        raise Refused("timestamp_out_of_tolerance")
    with suppress(ValueError, RecursionError):
        if isinstance(event := json.loads(body.decode()), dict):
            return event
    raise Refused("invalid_json")


def post(path: str, body: object, patience: int, **headers: str) -> Any:
    sent = {"Content-Type": "application/json", **headers}
    with urlopen(Request(BASE_URL + path, json.dumps(body).encode(), sent), timeout=patience) as answer:
        return json.load(answer)


def bearer() -> str:
    if time.time() > token["until"]:  # a token is kept for its hour
        token.update(post("/oauth/token", {"grant_type": "client_credentials", **CLIENT}, 3))
        token["until"] = time.time() + token["expires_in"] - 60
    return f"Bearer {token['access_token']}"


def capture(checkout: str) -> bool:
    """Return whether the money has moved; False: the hold is over. Raises while that is not known."""
    for patience in (8, 3):  # a capture answers within 8 s, and all of it fits into a webhook's 15
        try:
            post(f"/api/merchant/v1/checkouts/{checkout}/capture", {}, patience, Authorization=bearer())
            return True
        except HTTPError as refused:
            if b'"not_capturable"' in refused.read():
                return False
            token["until"] = 0 if refused.code == 401 else token["until"]
        except OSError:
            print("no answer", flush=True)
        time.sleep(1)  # then again: it takes nothing twice
    raise OSError(f"{checkout} is not captured yet")


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 1 << 20))
        try:
            event = verify(self.headers.get("X-Service-Signature", ""), body)
            seen, data = f"seen/{event.get('id')}", event.get("data", {})
            if not os.path.exists(seen):  # two deliveries at once may do the same: it does no harm
                if event.get("type") == "checkout.authorized" and capture(data["checkout_uuid"]):
                    open(f"paid/{data['checkout_uuid']}", "w").close()  # fulfil, slowly, what is here
                open(seen, "w").close()
            self.answer(200, "ok")
        except Refused as reason:  # whoever sent it: the body is neither kept nor logged
            self.answer(400, str(reason))
        except Exception as failure:
            print(failure, flush=True)
            self.answer(500, "send it again")  # a 4xx would give the hold away

    def answer(self, status: int, words: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(words)))
        self.end_headers()
        self.wfile.write(words.encode())


for table in ("seen", "paid"):  # in your service: tables, each with a unique column
    os.makedirs(table, exist_ok=True)
ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Receiver).serve_forever()
