"""listen.py is run against a real service, and forwards events to the receivers that merchants download."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import requests

from config.local import children
from tests.journeys import polling
from tests.journeys import receiver as receivers
from tests.journeys.merchant import Merchant
from tests.journeys.receiver import Receiver
from tests.journeys.service import Service
from tests.webhooks.foreign import programs
from tests.webhooks.receivers.test_receiver import RECEIVERS

pytestmark = [pytest.mark.journey, pytest.mark.rule("listen.file")]
MAKE = """
from portal import keys
from portal.models import ApiClient
merchant = ApiClient.objects.get(client_id={client_id!r}).merchant
made = keys.create_client(merchant, "Laptop", ["webhooks:read"])
import json
from pathlib import Path
Path({path!r}).write_text(json.dumps([made.client.client_id, made.client_secret]))
"""


class Listening:
    """A process that runs listen.py, which was downloaded from the service, and its output so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process, self.said = process, ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line

    def secret(self) -> str:
        polling.until(lambda: "Signing secret: " in self.said, within=20, what="the signing secret")
        return self.said.partition("Signing secret: ")[2].split()[0]

    def end(self) -> None:
        """Stop listen.py as Ctrl-C does. Fail unless it exits without an error."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(5) == 0, self.said
        assert "Traceback" not in self.said


@contextmanager
def listening(service: Service, folder: Path, client: list[str], forward: str) -> Iterator[Listening]:
    file = folder / "listen.py"
    file.write_bytes(requests.get(f"{service.base_url}/api/docs/listen.py", timeout=10).content)
    known = dict(zip(("CHECKOUT_CLIENT_ID", "CHECKOUT_CLIENT_SECRET"), client, strict=True))
    command = [sys.executable, str(file), "--base-url", service.base_url, "--forward", forward]
    process = subprocess.Popen(
        children.tie_to_parent(command, by=signal.SIGTERM),
        cwd=folder,
        env=known | {"PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Listening(process)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def laptop(service: Service, merchant: Merchant, tmp_path: Path) -> list[str]:
    """Return the id and secret of an API client that has only the scope `webhooks:read`."""
    kept = tmp_path / "client.json"
    service.command("shell", "-c", MAKE.format(client_id=merchant.credentials.client_id, path=str(kept)))
    found: list[str] = json.loads(kept.read_text())
    return found


def test_a_laptop_receives_the_same_events_as_the_endpoint(
    service: Service, subscribed: Merchant, receiver: Receiver, laptop: list[str], tmp_path: Path
) -> None:
    with (
        receivers.listening() as home,
        listening(service, tmp_path, laptop, home.url.replace("127.0.0.1", "localhost")) as running,
    ):
        home.secrets = [running.secret()]
        checkout_uuid = subscribed.held()
        subscribed.cancel(checkout_uuid)
        for event_type in ("checkout.authorized", "checkout.voided"):
            (here,) = home.awaited(event_type, checkout_uuid)
            (there,) = receiver.awaited(event_type, checkout_uuid)
            assert here.body == there.body
            named = {name.lower() for name in here.headers} - {"host", "accept-encoding"}
            assert named == {name.lower() for name in there.headers} - {
                *("host", "accept-encoding", "accept", "traceparent"),
            }
            for name in ("X-Service-Event-Id", "X-Service-Event-Type", "webhook-id", "User-Agent"):
                assert here.headers[name] == there.headers[name]
        assert home.refused == []
        listed = subscribed.call("GET", f"merchant/v1/events?checkout_uuid={checkout_uuid}").json()["data"]
        assert [row["delivery_status"] for row in listed["events"]] == ["delivered", "delivered"]
        running.end()


@pytest.mark.rule("listen.client")
def test_a_client_with_more_scopes_is_refused(service: Service, merchant: Merchant, tmp_path: Path) -> None:
    client = [merchant.credentials.client_id, merchant.credentials.client_secret]
    with listening(service, tmp_path, client, "http://127.0.0.1:9/") as running:
        assert running.process.wait(20) == 2
        polling.until(lambda: "checkouts:write" in running.said, within=5, what="what it may do too much")
    assert "has only the scope webhooks:read" in running.said


@pytest.mark.long
@pytest.mark.parametrize("receiver", RECEIVERS, ids=lambda path: path.suffix[1:])
def test_the_downloadable_receivers_accept_its_posts(
    service: Service, merchant: Merchant, laptop: list[str], tmp_path: Path, receiver: Path
) -> None:
    known = merchant.credentials
    with ExitStack() as stack:
        port = programs.held_port(stack)
        running = stack.enter_context(
            listening(service, tmp_path, laptop, f"http://127.0.0.1:{port}/webhooks")
        )
        given = programs.variables(service.base_url, known.client_id, known.client_secret)
        programs.start(receiver, tmp_path, given | {"SIGNING_SECRETS": running.secret()}, stack, port=port)
        merchant.awaited(merchant.held(), "captured", within=30)
        polling.until(lambda: running.said.count("  200  ") == 1, within=5, what="the answer")
        running.end()
