"""listen.py: what it signs, where it posts, and what it does while the API or the local server is down."""

import ast
import contextlib
import socket
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from portal.developer_docs import listen
from tests.config import described
from tests.webhooks import vectors
from webhooks import headers as real
from webhooks import signing

SOURCE = Path(listen.__file__)


def event(event_type: str = "checkout.voided", ago: float = 0) -> dict[str, Any]:
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - ago))
    return {
        "id": str(uuid4()),
        "type": event_type,
        "api_version": "2026-06",
        "created_at": at,
        "data": {"n": "Zoë"},
    }


def only_imports_old_standard_modules(source: str) -> None:
    """Fail unless Python 3.9 can parse the script, and all later versions have each imported module."""
    tree = ast.parse(source, feature_version=(3, 9))
    imports = [node for node in tree.body if isinstance(node, ast.Import)]
    names = {alias.name for node in imports for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported = {name.partition(".")[0] for name in names}
    assert imported <= sys.stdlib_module_names and not imported & {"tomllib", "zoneinfo", "fcntl", "pwd"}


class TestTheFile:
    @pytest.mark.rule("listen.file")
    def test_is_served_and_needs_only_the_standard_library(self) -> None:
        answer = Client().get("/api/docs/listen.py")
        assert answer.status_code == 200 and answer["Content-Type"] == "text/x-python; charset=utf-8"
        assert answer.content == SOURCE.read_bytes()
        only_imports_old_standard_modules(SOURCE.read_text())

    @pytest.mark.rule("listen.where")
    def test_can_read_the_environment_of_an_address(self) -> None:
        assert described.document()["info"]["x-environment"] == "local"
        assert described.of_production("print(schema.document()['info']['x-environment'])") == "production\n"


@pytest.mark.rule("listen.file")
class TestSigning:
    def test_agrees_with_the_service_vector_by_vector(self) -> None:
        compared = 0
        for vector in (*vectors.X_SERVICE_SIGNATURE, *vectors.STANDARD_WEBHOOKS):
            if vector.signed_with and len(vector.signed_with) == 1 and vector.timestamp is not None:
                named = {"id": vector.event_id, "type": "checkout.voided"}
                made = listen.build_headers(vector.signed_with[0], named, vector.body, 1, vector.timestamp)
                made = {name.lower(): text for name, text in made.items()}
                assert {name: made[name] for name in vector.headers} == vector.headers, vector.name
                compared += 1
        assert compared > 30

    def test_has_all_headers_of_a_delivery(self, monkeypatch: pytest.MonkeyPatch) -> None:
        secret, told = listen.generate_secret(), event()
        assert len(secret) == len(signing.new_secret()) and secret.startswith("whsec_")
        monkeypatch.setattr(real, "_decrypt_secret", lambda sealed: sealed)
        made = listen.build_headers(secret, told, b"{}", 3, 1_780_000_000)
        claimed: Any = SimpleNamespace(
            sealed_secrets=[secret],
            claimed_at=datetime.fromtimestamp(1_780_000_000, UTC),
            event_id=told["id"],
            event_type=told["type"],
            attempt_number=3,
        )
        sent = real.signed_headers(claimed, b"{}")
        assert made == {name: text for name, text in sent.items() if name != "traceparent"}


@pytest.mark.rule("listen.where")
class TestWhere:
    @pytest.mark.parametrize(
        "url",
        [
            "http://127.0.0.1.evil.com/",
            "http://localhost.evil.com/",
            "http://localhost@evil.com/",
            "http://127.0.0.1:80@evil.com/",
            "http://evil.com#@127.0.0.1/",
            "http://evil.com\\@127.0.0.1/",
            "http://user@127.0.0.1/",
            "http://192.168.0.1/",
            "http://169.254.169.254/",
            "http://0.0.0.0/",
            "http://0/",
            "http://2130706433/",
            "http://[::]/",
            "http://[::ffff:8.8.8.8]/",
            "http://[fe80::1]/",
            "http://127.0.0.1 .evil.com/",
            "http://127.0.0.1\r\nX: y/",
            "http://127.0.0.1:0/",
            "http://127.0.0.1:99999/",
            "https://127.0.0.1/",
            "ftp://127.0.0.1/",
            "file:///etc/passwd",
            "//127.0.0.1/",
            "http:///",
            "http://[/",
            "127.0.0.1:3000",
            "",
        ],
    )
    def test_it_refuses_to_post_to_other_addresses(self, url: str) -> None:
        with pytest.raises(listen.Stop, match="--forward"):
            listen.Target(url)

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "[::1]"])
    def test_it_posts_to_loopback_addresses(self, host: str) -> None:
        target = listen.Target(f"http://{host}:3000/hooks?a=b")
        assert (target.port, target.path) == (3000, "/hooks?a=b")

    def test_localhost_that_resolves_elsewhere_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = [(2, 1, 6, "", ("8.8.8.8", 80))]
        monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)
        with pytest.raises(OSError, match="not this machine"):
            listen.Target("http://localhost/").post(b"{}", {})

    @pytest.mark.rule("listen.file")
    @pytest.mark.parametrize(
        "begins", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: "], ids=["nothing", "a drop at a time"]
    )
    def test_an_answer_that_does_not_end_is_given_up(
        self, monkeypatch: pytest.MonkeyPatch, begins: bytes
    ) -> None:
        monkeypatch.setattr(listen, "ATTEMPT_SECONDS", 0.5)
        with socket.create_server(("127.0.0.1", 0)) as server:

            def dribble() -> None:
                taken, _ = server.accept()
                with taken, contextlib.suppress(OSError):
                    taken.sendall(begins)
                    while begins and not time.sleep(0.1):  # type: ignore[func-returns-value]
                        taken.sendall(b"x")
                    time.sleep(2)

            threading.Thread(target=dribble, daemon=True).start()
            began = time.monotonic()
            with pytest.raises(listen.HTTP_ERRORS) as ended:
                listen.Target(f"http://127.0.0.1:{server.getsockname()[1]}/").post(b"{}", {})
        assert listen.describe_error(ended.value) == "timed out" and time.monotonic() - began < 1.5

    @pytest.mark.parametrize(
        "url", ["http://sandbox.example", "http://127.0.0.1.evil.com", "https://a@b.example", "sandbox", ""]
    )
    def test_no_secret_is_sent_unencrypted(self, url: str) -> None:
        with pytest.raises(listen.Stop, match="--base-url"):
            listen.Api(url, "client", "secret")


class TestPolicy:
    def starts(self, envelope: dict[str, Any], status: int | None) -> list[float]:
        """Return when each attempt starts, in seconds after the first one, if every attempt fails immediately."""
        delivery: listen.Delivery | None = listen.new_delivery(envelope, time.time())
        assert delivery is not None
        first, found = delivery.due_at, list[float]()
        while delivery:
            found.append(round(delivery.due_at - first, 1))
            delivery = listen.plan_next_attempt(delivery, status, delivery.due_at)
        return found

    @pytest.mark.rule("listen.file")
    def test_matches_the_retry_policy_of_the_service(self) -> None:
        hold = event("checkout.authorized")
        for may_change in (None, 408, 429, 500, 503):
            assert self.starts(hold, may_change) == [0, 5, 25, 75]
        for final in (301, 400, 404, 410, 600):
            assert self.starts(hold, final) == [0]
            assert self.starts(event(), final) == [0, 5, 35, 155, 755]
        assert self.starts(event("checkout.authorized", ago=100), 500) == [0, 5], "none at the hold's end"
