"""The demo shop as a real process, between a stub of the service and a customer."""

import contextlib
import http.client
import http.server
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from tests.config.local import living
from tests.serving import Reply
from tests.serving import serving as serve
from webhooks import signing

ROOT = Path(__file__).resolve().parents[3]
CHECKOUTS = "/api/merchant/v1/checkouts"


class Service:
    """The part of the merchant API that the shop uses. It records each call."""

    def __init__(self) -> None:
        self.url = ""
        self.calls: list[tuple[str, Any, str | None]] = []
        # The key is the end of a path. The value has the status and the error code of each call that must fail.
        self.refusals: dict[str, list[tuple[int, str]]] = {}
        self.secret, self.is_subscribed, self.status = signing.new_secret(), False, "created"

    def take(self, request: http.server.BaseHTTPRequestHandler, content: bytes) -> Reply:
        # The shop polls the list of changes in the background, so these calls are not recorded.
        if "sort=updated_at" not in request.path:
            key = request.headers.get("Idempotency-Key")
            self.calls.append((request.path, json.loads(content or b"null"), key))
        status, answer = self.answer(request.path)
        return Reply(status, json.dumps(answer).encode())

    def bodies_sent_to(self, ending: str) -> list[Any]:
        return [body for path, body, _ in self.calls if path.endswith(ending)]

    def answer(self, path: str) -> tuple[int, Any]:
        for ending, refusals in self.refusals.items():
            if path.endswith(ending) and refusals:
                status, code = refusals.pop(0)
                return status, {"error": {"code": code}}
        if path.startswith(f"{CHECKOUTS}?sort=updated_at"):
            return 200, {"data": {"checkouts": [], "next_cursor": "the next"}}
        if path == "/oauth/token":
            return 200, {"access_token": "the token", "expires_in": 3600}
        if path.endswith("/subscription"):
            first, self.is_subscribed = not self.is_subscribed, True
            return (201, {"data": {"signing_secret": self.secret}}) if first else (200, {"data": {}})
        if path.endswith("/rotate"):
            return 200, {"data": {"signing_secret": self.secret}}
        if path == CHECKOUTS:
            return 201, {"data": {"checkout_uuid": str(uuid4()), "checkout_url": "http://pay.example/?id=1"}}
        held = {"status": self.status, "amount": 4850, "authorized_at": "2026-01-01T00:00:00.000Z"}
        return 200, {"data": held | {"checkout_url": "http://pay.example/?id=1"}}


class Customer:
    """The browser of a customer of the shop. It also sends webhooks to the shop, as the service does."""

    def __init__(self, service: Service, port: int, folder: Path) -> None:
        self.service, self.port, self.folder = service, port, folder

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str, str]:
        """Send a request; return the status, the Location and the body of the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, names | {"Content-Length": str(len(body))})
            answer = connection.getresponse()
            return answer.status, answer.getheader("Location", ""), answer.read().decode()

    def buy(self, quantity: int = 2) -> dict[str, Any]:
        """Buy tickets; return the request with which the shop created the checkout."""
        form = urlencode({"show": "union-hall", "quantity": quantity}).encode()
        assert self.send("POST", "/buy", form)[:2] == (303, "http://pay.example/?id=1")
        request: dict[str, Any] = self.service.bodies_sent_to(CHECKOUTS)[-1]
        return request

    def deliver(self, body: bytes, signature: str | None = None) -> tuple[int, str]:
        signature = signature or signing.sign([self.service.secret], body, int(time.time()))
        status, _, text = self.send("POST", "/webhooks", body, X_Service_Signature=signature)
        return status, text

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def dumped_database(self) -> str:
        with contextlib.closing(sqlite3.connect(self.folder / "shop.sqlite3")) as connection:
            return "\n".join(connection.iterdump())


def authorized(order_id: str) -> bytes:
    about = {"checkout_uuid": str(uuid4()), "merchant_order_id": order_id}
    return json.dumps({"id": str(uuid4()), "type": "checkout.authorized", "data": about}).encode()


@contextlib.contextmanager
def open_shop(
    service: Service, folder: Path, until: str = "subscribed to webhooks at "
) -> Iterator[Customer]:
    """Run a shop on a free port until the block ends. Yield its customer after the log contains `until`."""
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as probe:
        port = probe.server_port
    variables = {"BASE_URL": service.url, "SHOP_PORT": str(port)}
    variables |= {"SHOP_CLIENT_ID": "shop", "SHOP_CLIENT_SECRET": "the client secret"}
    variables |= {"SHOP_STATE": str(folder / "shop.sqlite3"), "PYTHONUNBUFFERED": "1"}
    with (folder / "log").open("w") as log:
        command = (sys.executable, "-m", "config.local.shop")
        shop = subprocess.Popen(command, cwd=ROOT, env=os.environ | variables, stdout=log, stderr=log)
    customer = Customer(service, port, folder)
    try:
        assert living.within(10, lambda: until in customer.log()), customer.log()
        yield customer
    finally:
        shop.kill()
        shop.wait()


@contextlib.contextmanager
def serving() -> Iterator[Service]:
    service = Service()
    with serve(service.take) as service.url:
        yield service
