"""listen.py in a separate process, with a stub of the API and of the local server."""

import contextlib
import http.server
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.portal.developer_docs.test_listen import SOURCE, event
from tests.serving import Reply, serving
from webhooks import signing

# The script that the separate process runs: listen.py with short intervals.
QUICK = """
import sys
sys.path.insert(0, {folder!r})
import listen
listen.POLL_SECONDS, listen.PATIENT_GAPS = 0.05, (0.1,) * 4
listen.URGENT_STARTS, listen.MIN_GAP, listen.ATTEMPT_SECONDS = (0, 0.1, 0.2, 0.3), 0.1, 1
sys.exit(listen.main())
"""


class Stub:
    """A stub of the API and of the local server.

    It first sends the responses that a test has set. Afterwards, it sends successful responses.
    """

    def __init__(self) -> None:
        self.environment, self.scope = "sandbox", "webhooks:read"
        self.events: list[dict[str, Any]] = []
        # The first responses of the API's event feed: status and headers.
        self.answers: list[tuple[int, dict[str, str]]] = []
        # The first statuses that the local server returns. All later ones are 200.
        self.at_home: list[int] = []
        self.asked: list[str] = []
        self.posts: list[tuple[dict[str, str], bytes]] = []

    def get(self, path: str, headers: Any) -> tuple[int, dict[str, str], Any]:
        if path == "/api/schema":
            return 200, {}, {"info": {"x-environment": self.environment}}
        if path == "/elsewhere":
            return 200, {}, {"info": {"x-environment": "sandbox"}}
        if self.answers:
            return (*self.answers.pop(0), {"error": {"message": "Not now."}})
        if headers["Authorization"] != f"Bearer token-{self.asked.count('/oauth/token')}":
            return 401, {}, {"error": {"message": "The token has ended."}}
        place = int(path.partition("cursor=")[2].partition("&")[0] or 0)
        listed = [{"event": told, "delivery_status": "none"} for told in self.events[place:]]
        if "limit=1" in path.split("&"):
            listed = listed[:1]
        return 200, {}, {"data": {"events": listed, "next_cursor": str(place + len(listed))}}

    def post(self, path: str, headers: Any, body: bytes) -> tuple[int, dict[str, str], Any]:
        if path == "/oauth/token":
            token = f"token-{self.asked.count(path)}"
            return 200, {}, {"access_token": token, "expires_in": 3600, "scope": self.scope}
        self.posts.append((dict(headers.items()), body))
        status = self.at_home.pop(0) if self.at_home else 200
        return status, {"Location": "/elsewhere"} if status == 302 else {}, {}


@pytest.fixture
def stub() -> Iterator[tuple[Stub, str]]:
    stub = Stub()

    def answer(asked: http.server.BaseHTTPRequestHandler, body: bytes) -> Reply:
        stub.asked.append(asked.path.partition("?")[0])
        is_read = asked.command == "GET"
        said = stub.get(asked.path, asked.headers) if is_read else stub.post(asked.path, asked.headers, body)
        status, headers, content = said
        return Reply(status, json.dumps(content).encode(), headers)

    with serving(answer) as address:
        yield stub, address


class Running:
    """listen.py in a separate process, and its output."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process, self.said = process, list[str]()
        self._lines = queue.Queue[str]()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def until(self, words: str) -> str:
        """Wait for a line that contains these words, and return the line. Each line must come within ten seconds."""
        while True:
            line = self._lines.get(timeout=10)
            self.said.append(line)
            if words in line:
                return line


@contextlib.contextmanager
def listening(url: str, forward: str, *, secret: str = "sk_1") -> Iterator[Running]:
    process = subprocess.Popen(
        [sys.executable, "-c", QUICK.format(folder=str(SOURCE.parent)), "--forward", forward],
        env={
            "PATH": os.environ["PATH"],
            "CHECKOUT_BASE_URL": url,
            "CHECKOUT_CLIENT_ID": "client",
            "CHECKOUT_CLIENT_SECRET": secret,
            # listen.py must not use this proxy, because both addresses are on this machine.
            "HTTP_PROXY": "http://127.0.0.1:9",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Running(process)
    finally:
        process.kill()
        process.wait()


def told_and_ended(running: Running) -> str:
    output = running.process.stdout
    assert running.process.wait(10) == 2 and output is not None
    time.sleep(0.1)
    said = "".join(running._lines.queue)
    assert "Traceback" not in said
    return said


class TestRunning:
    @pytest.mark.rule("listen.file")
    def test_posts_signed_events_retries_failures_and_ends_with_ctrl_c(self, stub: tuple[Stub, str]) -> None:
        api, url = stub
        with listening(url, f"{url}/webhooks") as running:
            secret = running.until("Signing secret: ").split()[-1]
            told = event()
            api.at_home = [500, 400, 302]
            api.events.append(told)
            assert "500" in running.until("again in") and "400" in running.until("again in")
            assert "302" in running.until("again in") and "attempt 4  200" in running.until(told["id"])
            for number, (headers, body) in enumerate(api.posts, start=1):
                assert headers["X-Service-Delivery-Attempt"] == str(number)
                given = headers["X-Service-Signature"]
                assert signing.verify(given, body, [secret], int(time.time())) == told
            assert api.asked.count("/elsewhere") == 0, "redirects are not followed"
            assert b'"Zo\xc3\xab"' in api.posts[0][1] and len({body for _, body in api.posts}) == 1
            hold, late = event("checkout.authorized"), event("checkout.authorized", ago=121)
            api.at_home = [404]
            api.events += [late, hold]
            found = [running.until("checkout.authorized") for _ in range(2)]
            assert any("given up" in line and hold["id"] in line for line in found)
            assert any("not sent: the hold is over" in line and late["id"] in line for line in found)
            running.process.send_signal(signal.SIGINT)
            assert running.process.wait(5) == 0
            assert "Traceback" not in running.until("No longer listening.")

    @pytest.mark.rule("listen.file")
    @pytest.mark.long
    def test_survives_temporary_errors_of_the_api(self, stub: tuple[Stub, str]) -> None:
        api, url = stub
        api.answers = [(503, {"Retry-After": "1"}), (429, {"Retry-After": "1"}), (500, {})]
        with listening(url, f"{url}/webhooks") as running:
            assert "HTTP 503" in running.until("does not answer")
            running.until("The API answers again.")
            running.until("Signing secret: ")
            api.answers = [(401, {})]
            told = event()
            api.events.append(told)
            running.until(told["id"])
            assert api.asked.count("/oauth/token") == 2, "a token that has ended is got anew"
            api.answers = [(400, {})]
            assert "Not now." in running.until("The API refuses to list events")

    def test_reports_that_no_local_server_is_listening(self, stub: tuple[Stub, str]) -> None:
        api, url = stub
        api.events.append(event())
        with listening(url, "http://localhost:9/webhooks") as running:
            assert "no answer: connection refused" in running.until("again in")

    def test_waits_for_an_unreachable_api(self) -> None:
        with listening("http://127.0.0.1:9", "http://localhost:3000") as running:
            assert "connection refused" in running.until("The API does not answer")
            running.process.send_signal(signal.SIGINT)
            assert running.process.wait(5) == 0

    @pytest.mark.rule("listen.where")
    @pytest.mark.parametrize("environment", ["production", "staging", ""])
    def test_refuses_production_before_it_sends_the_secret(
        self, stub: tuple[Stub, str], environment: str
    ) -> None:
        api, url = stub
        api.environment = environment
        with listening(url, "http://localhost:3000") as running:
            assert f"{url} is {environment}. Listening is for the sandbox" in told_and_ended(running)
        assert api.asked == ["/api/schema"] and not api.posts

    @pytest.mark.rule("listen.where")
    def test_follows_no_redirect_of_the_api(
        self, stub: tuple[Stub, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        api, url = stub
        monkeypatch.setattr(api, "get", lambda *_: (302, {"Location": f"{url}/elsewhere"}, {}))
        with listening(url, "http://localhost:3000") as running:
            assert "is not the API of this service" in told_and_ended(running)
        assert api.asked == ["/api/schema"]

    @pytest.mark.rule("listen.client")
    @pytest.mark.parametrize(
        ("scope", "said"),
        [
            ("webhooks:read checkouts:write", "may do more than listen: checkouts:write."),
            ("checkouts:read refunds:write", "may do more than listen: checkouts:read, refunds:write."),
            ("", "may do less than listen: it lacks webhooks:read."),
        ],
    )
    def test_refuses_a_client_with_other_scopes(self, stub: tuple[Stub, str], scope: str, said: str) -> None:
        api, url = stub
        api.scope = scope
        with listening(url, "http://localhost:3000") as running:
            found = told_and_ended(running)
        assert said in found and "has only the scope webhooks:read" in found
        assert not api.posts
