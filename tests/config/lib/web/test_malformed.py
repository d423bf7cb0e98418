"""Responses that are made outside Django have the same wording and headers as all other refusals."""

import io
import json
import logging
import socket
from typing import Any

import pytest
from gunicorn.http import errors as http
from pytest_django.fixtures import Settings

from config.gunicorn_worker import Worker
from config.lib.web.bodies import TOO_SLOW, CountedBodies


class BrokenOff(io.BytesIO):
    """A request body that cannot be read, because its connection was lost."""

    def read(self, *_: Any) -> bytes:
        raise OSError


def late(path: str, body: io.BytesIO, **environ: str) -> tuple[str, dict[str, str], dict[str, Any]]:
    """Send a body that never arrives completely; return the response's status, headers and content."""
    told: list[Any] = []
    application = CountedBodies(lambda *_: pytest.fail("It must not be called."), largest=100)
    sent = {"PATH_INFO": path, "CONTENT_LENGTH": "30", "wsgi.input": body, **environ}
    [content] = application(sent, lambda *head: told.extend(head))
    return told[0], dict(told[1]), json.loads(content)


@pytest.mark.rule("api.slow_body", "api.request_id", "api.no_store")
class TestLateBody:
    @pytest.mark.parametrize("body", [io.BytesIO(b"{"), BrokenOff()], ids=["short", "broken"])
    @pytest.mark.parametrize("path", ["/api/merchant/v1/checkouts", "/pay/phone"])
    def test_is_a_408_with_an_api_error(self, path: str, body: io.BytesIO, settings: Settings) -> None:
        status, headers, content = late(path, body)
        assert status == "408 Request Timeout" and headers["Content-Type"] == "application/json"
        assert headers["Cache-Control"] == "no-store" and headers["X-Request-Id"].startswith("req_")
        assert content == {
            "error": {
                "code": "request_timeout",
                "message": TOO_SLOW,
                "param": None,
                "details": [],
                "request_id": headers["X-Request-Id"],
                "doc_url": f"{settings.BASE_URL}/api/docs#error-request_timeout",
            }
        }

    def test_keeps_the_callers_request_id(self) -> None:
        _, headers, content = late("/api/x", io.BytesIO(), HTTP_X_REQUEST_ID="mine")
        assert headers["X-Request-Id"] == content["error"]["request_id"] == "mine"
        _, headers, _ = late("/api/x", io.BytesIO(), HTTP_X_REQUEST_ID="a b")
        assert headers["X-Request-Id"].startswith("req_")

    @pytest.mark.rule("token.errors")
    @pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
    def test_at_an_oauth_endpoint_is_an_rfc_6749_answer(self, path: str) -> None:
        status, headers, content = late(path, io.BytesIO())
        assert (status, content) == (
            "408 Request Timeout",
            {"error": "invalid_request", "error_description": TOO_SLOW},
        )
        assert headers["Cache-Control"] == "no-store" and headers["X-Request-Id"]


@pytest.mark.rule("api.malformed")
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (http.InvalidHeader("sk_secret"), 400, "invalid_header"),
        (http.LimitRequestLine(9, 8), 400, "invalid_header"),
        (http.InvalidResponseHeader("sk_secret"), 500, "internal_error"),
        (RuntimeError("sk_secret"), 500, "internal_error"),
    ],
)
def test_the_server_answers_unreadable_requests_with_an_api_error(
    error: Exception, status: int, code: str
) -> None:
    worker: Any = Worker.__new__(Worker)
    worker.log = logging.getLogger("nobody")
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            worker.handle_error(None, ours, None, error)
        head, _, body = theirs.makefile("rb").read().decode().partition("\r\n\r\n")
    told = json.loads(body)["error"]
    assert head.startswith(f"HTTP/1.1 {status} ") and told["code"] == code
    assert f"X-Request-Id: {told['request_id']}" in head and "Cache-Control: no-store" in head
    assert "sk_secret" not in body and told["message"].endswith(".")
