"""Calls the whole application in this process, as a web server would. The callers are simulated."""

import io
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.core.signals import request_started
from django.db import connections

from config.lib.web.bodies import Application
from config.wsgi import application
from payments import operator_stops
from payments.models import Merchant
from portal import keys, provisioning
from tests import factories

API = "/api/merchant/v1"
_ENVIRON = {
    "SERVER_NAME": "127.0.0.1",
    "SERVER_PORT": "80",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "REMOTE_ADDR": "127.0.0.1",
    "HTTP_HOST": "127.0.0.1",
    "HTTP_ACCEPT": "*/*",
    "HTTP_USER_AGENT": "backend/1.0",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http",
    "wsgi.errors": io.StringIO(),
    "wsgi.multithread": True,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
}


class Meter:
    """Counts the CPU seconds that the application uses. The simulated browser and backend are not counted."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the CPU seconds of the block."""
        started = time.process_time()
        yield
        self.seconds += time.process_time() - started


METER = Meter()


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: list[tuple[str, str]]


class Call(NamedTuple):
    """A request, and its expected status."""

    method: str
    path: str
    status: int = 200
    body: bytes = b""
    token: str = ""
    cookie: str = ""
    content_type: str = "application/json"

    def send(self, handler: Application = application) -> Answer:
        """Make the call.

        Raise RuntimeError if the status is unexpected, because a refused call costs less.
        """
        path, _, query = self.path.partition("?")
        environ = {
            **_ENVIRON,
            "REQUEST_METHOD": self.method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(self.body)),
            "CONTENT_TYPE": self.content_type,
            "wsgi.input": io.BytesIO(self.body),
        }
        if self.token:
            environ["HTTP_AUTHORIZATION"] = f"Bearer {self.token}"
        if self.cookie:
            environ["HTTP_COOKIE"] = self.cookie
        responses: list[tuple[str, list[tuple[str, str]]]] = []

        def start(
            status: str, headers: list[tuple[str, str]], fault: Any = None, /
        ) -> Callable[[bytes], object]:
            responses.append((status, headers))
            return io.BytesIO().write

        with METER.running():
            response: Any = handler(environ, start)
            body = b"".join(response)
            response.close()
        status = int(responses[0][0].split()[0])
        if status != self.status:
            raise RuntimeError(f"{self.method} {self.path}: {status} {body[:500]!r}")
        return Answer(status, body, responses[0][1])


@dataclass(frozen=True)
class Backend:
    """A merchant's backend, with its API key and an access token."""

    merchant: Merchant
    credentials: bytes
    token: str

    @classmethod
    def of_new_merchant(cls, name: str) -> "Backend":
        created = provisioning.create_merchant(name, email=f"{name.lower()}@acme.example")
        return cls._with(created.merchant, created.client_id, created.client_secret)

    @classmethod
    def of_oldest_merchant(cls) -> "Backend":
        """Return the backend of the oldest merchant, with a new key."""
        merchant = Merchant.objects.order_by("created_at")[0]
        client, secret = keys.create_client(merchant, "Bench")
        return cls._with(merchant, client.client_id, secret)

    @classmethod
    def _with(cls, merchant: Merchant, client_id: str, secret: str) -> "Backend":
        grant = {"grant_type": "client_credentials", "client_id": client_id}
        credentials = json.dumps(grant | {"client_secret": secret}).encode()
        token = json.loads(Call("POST", "/oauth/token", body=credentials).send().body)["access_token"]
        return cls(merchant, credentials, token)

    def new_token(self) -> Call:
        return Call("POST", "/oauth/token", body=self.credentials)

    def get(self, path: str) -> Call:
        return Call("GET", f"{API}/{path}", token=self.token)

    def post(self, path: str, body: object, status: int = 200) -> Call:
        return Call("POST", f"{API}/{path}", status, json.dumps(body).encode(), self.token)

    def create(self) -> Call:
        """Return a call that creates an order with five items."""
        return self.post("checkouts", order(), status=201)


def order() -> dict[str, Any]:
    """Return the body of a request that creates an order with five items for a total of £450.00."""
    lines = [factories.item(item_ref=f"ticket-{n}", custom_data={"event_id": "E-71"}) for n in range(5)]
    return factories.order(items=lines, total_amount=5 * 9000)


def use(name: str) -> None:
    """From now on, let this process use the database with this name. Create the database if it is missing."""
    wrapper: Any = connections["default"]
    is_new = name not in _made
    if is_new:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                connection.execute(f'CREATE DATABASE "{name}"')
        _made.append(name)
    wrapper.close()
    wrapper.close_pool()
    wrapper.settings_dict["NAME"] = name
    ContentType.objects.clear_cache()
    operator_stops.reread_stops()
    # The restore guard refuses a connection to a second database within one request. After this signal, the
    # guard assumes a new request.
    request_started.send(use)
    if is_new:
        call_command("migrate", verbosity=0)


_made: list[str] = []


def log_to(path: Path) -> None:
    """Write all log lines of production, but to a file, so that the output of the bench stays readable."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(path.open("a"))


def warm(calls: Sequence[Call]) -> None:
    """Make the calls without measuring them."""
    for call in calls:
        call.send()
