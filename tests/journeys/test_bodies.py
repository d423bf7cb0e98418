"""Large, slow or invalid requests from unknown clients. They must use almost no resources of a running service."""

import itertools
import json
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from tests import factories
from tests.journeys.merchant import PATIENCE, Merchant, refusal
from tests.journeys.service import Service

pytestmark = pytest.mark.journey
MANY = 120_000_000
LARGEST = 256 * 1024
MULTIPART = "multipart/form-data; boundary=x"
FILE = b'--x\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\n'
# Paths to which anyone can send a POST without a login. Some of them refuse every POST, or do not exist.
OPEN = [
    *("/pay", "/pay/phone", "/pay/language", "/pay/share/x/phone", "/pay/g/x/take", "/pay/offers/x", "/bank/card/x"),
    *("/accounts/login/", "/accounts/password/reset/", "/join/x", "/portal", "/admin/login/", "/mail"),
    "/portal/settings/save",
    *("/oauth/token", "/oauth/revoke", "/api/merchant/v1/checkouts", "/api/sandbox/v1/checkouts/x/pay"),
    *("/api/docs", "/api/schema"),
    *("/provider/notifications", "/livez", "/readyz", "/static/css/tokens.css", "/nothing"),
]  # fmt: skip


@contextmanager
def connected(service: Service) -> Iterator[socket.socket]:
    parts = urlsplit(service.base_url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=15) as connection:
        yield connection


def head(service: Service, path: str, **headers: str) -> bytes:
    names = {"Host": urlsplit(service.base_url).netloc} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in names.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def answer_of(connection: socket.socket) -> str:
    """Read until the service closes the connection. Return the text."""
    with connection.makefile("rb") as file:
        return file.read().decode()


def refused(answer: str, status: int) -> None:
    top, _, body = answer.partition("\r\n\r\n")
    assert top.startswith(f"HTTP/1.1 {status} "), answer
    assert "\r\nconnection: close" in top.lower() and body


def send(connection: socket.socket, pieces: Iterable[bytes]) -> int:
    """Send the pieces until the service stops reading. Return how many bytes were sent."""
    sent = 0
    connection.settimeout(1)
    try:
        for piece in pieces:
            connection.sendall(piece)
            sent += len(piece)
    except OSError:
        pass
    return sent


def stored_rows() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("*.upload*"))


@pytest.mark.rule("api.body_size")
class TestTooLarge:
    @pytest.mark.parametrize("path", OPEN)
    def test_is_refused_by_its_length(self, service: Service, path: str) -> None:
        with connected(service) as connection:
            connection.sendall(head(service, path, Content_Type=MULTIPART, Content_Length=str(MANY)))
            refused(answer_of(connection), 413)

    def test_is_neither_read_nor_stored(self, service: Service) -> None:
        before = stored_rows()
        with connected(service) as connection:
            connection.sendall(head(service, "/pay/phone", Content_Type=MULTIPART, Content_Length=str(MANY)))
            pieces = itertools.chain([FILE], itertools.repeat(b"x" * 65_536, MANY // 65_536))
            # The service does not read the body, so the data only fills the kernel's socket buffers.
            assert send(connection, pieces) < MANY / 4
            assert stored_rows() == before

    @pytest.mark.parametrize(
        "path",
        [
            "/pay/phone",
            "/oauth/token",
            "/oauth/revoke",
            "/api/merchant/v1/checkouts",
            "/nothing",
            "/portal/settings/save",
        ],
    )
    def test_is_refused_when_sent_in_chunks(self, service: Service, path: str) -> None:
        before = stored_rows()
        chunk = b"%x\r\n%s\r\n" % (16_384, b"x" * 16_384)
        with connected(service) as connection:
            connection.sendall(head(service, path, Content_Type=MULTIPART, Transfer_Encoding="chunked"))
            connection.sendall(chunk * 33)
            refused(answer_of(connection), 413)
        with connected(service) as connection:
            connection.sendall(head(service, path, Content_Type=MULTIPART, Transfer_Encoding="chunked"))
            assert send(connection, itertools.repeat(chunk, MANY // 16_384)) < MANY / 4
        assert stored_rows() == before


@pytest.mark.rule("api.slow_body")
class TestSlow:
    @pytest.mark.long
    def test_is_refused_after_ten_seconds_and_delays_no_other_request(self, service: Service) -> None:
        began = time.monotonic()
        with connected(service) as counted, connected(service) as chunked:
            counted.sendall(head(service, "/pay/phone", Content_Length="1000"))
            chunked.sendall(head(service, "/pay/phone", Transfer_Encoding="chunked"))
            while time.monotonic() - began < 9:
                counted.sendall(b"x")
                chunked.sendall(b"1\r\nx\r\n")
                time.sleep(0.3)
            assert requests.get(f"{service.base_url}/livez", timeout=2).status_code == 200
            for connection in (counted, chunked):
                answer = answer_of(connection)
                refused(answer, 408)
                assert '"code": "request_timeout"' in answer and "X-Request-Id: req_" in answer
        assert 9 < time.monotonic() - began < 15


class TestChunks:
    def send(self, merchant: Merchant, path: str, *pieces: bytes) -> requests.Response:
        headers = merchant.headers | {"Content-Type": "application/json"}
        url = f"{merchant.base_url}/api/merchant/v1/{path}"
        return requests.post(url, data=iter(pieces), headers=headers, timeout=PATIENCE)

    def test_are_read_as_one_body(self, merchant: Merchant) -> None:
        whole = json.dumps(factories.order()).encode()
        answer = self.send(merchant, "checkouts", whole[:7], whole[7:8], whole[8:])
        assert answer.status_code == 201, answer.text
        uuid = answer.json()["data"]["checkout_uuid"]
        merchant.pay(uuid)
        part = self.send(merchant, f"checkouts/{uuid}/capture", b'{"amount"', b": 1}")
        assert refusal(part) == (422, "partial_capture_not_supported")
        assert merchant.read(uuid)["status"] == "authorized"
        assert self.send(merchant, f"checkouts/{uuid}/capture", b'{"amount": ', b"9000}").status_code == 200

    def test_can_be_an_empty_body(self, merchant: Merchant) -> None:
        assert self.send(merchant, f"checkouts/{merchant.held()}/capture").status_code == 200

    def test_are_counted_together(self, merchant: Merchant) -> None:
        whole = json.dumps(factories.order()).encode()
        blanks = b" " * (LARGEST - len(whole))
        assert self.send(merchant, "checkouts", whole, blanks).status_code == 201
        assert refusal(self.send(merchant, "checkouts", whole, blanks, b" ")) == (413, "payload_too_large")


class TestIncompleteBody:
    @pytest.mark.parametrize("framing", [{"Content_Length": "30"}, {"Transfer_Encoding": "chunked"}])
    def test_changes_nothing(self, service: Service, merchant: Merchant, framing: dict[str, str]) -> None:
        uuid = merchant.held()
        path = f"/api/merchant/v1/checkouts/{uuid}/capture"
        with connected(service) as connection:
            connection.sendall(head(service, path, **merchant.headers, **framing))
            connection.shutdown(socket.SHUT_WR)
            assert " 200 " not in answer_of(connection)
        assert merchant.read(uuid)["status"] == "authorized"


class TestASlowClient:
    @pytest.mark.long
    def test_that_does_not_finish_the_head_is_disconnected(self, service: Service) -> None:
        with connected(service) as connection:
            connection.settimeout(30)
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: ")
            assert "200 OK" not in answer_of(connection)

    def test_that_does_not_close_its_connection_delays_no_other(self, service: Service) -> None:
        """A client that does not close its connection must not delay other clients.

        Earlier, the thread that accepts connections had a bug, and waited 2 s for each such client.
        """
        with ExitStack() as held:
            for _ in range(40):
                connection = held.enter_context(connected(service))
                connection.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert requests.get(f"{service.base_url}/livez", timeout=10).status_code == 200


class TestInvalidHttp:
    @pytest.mark.rule("api.malformed", "api.own_words")
    @pytest.mark.parametrize(
        ("sent", "words"),
        [
            (b"GET /api/docs HTTP/1.1\r\nAuthorization Bearer sk_secret\r\n\r\n", "not a valid HTTP request"),
            (b"GET /api/docs HTTP/1.1\r\nA b: sk_secret\r\n\r\n", "not a valid HTTP request"),
            (b"GET /api/docs HTTP/1.1\r\nA: sk_secret\x00\r\n\r\n", "not a valid HTTP request"),
            (b"sk_secret\r\n\r\n", "not a valid HTTP request"),
            (b"GET /" + b"sk_secret" * 2000 + b" HTTP/1.1\r\n\r\n", "URL is too long"),
            (b"GET / HTTP/1.1\r\nA: " + b"sk_secret" * 2000 + b"\r\n\r\n", "too many or too long"),
            (b"GET / HTTP/1.1\r\n" + b"A: sk_secret\r\n" * 200 + b"\r\n", "too many or too long"),
            (b"POST / HTTP/1.1\r\nContent-Length: sk_secret\r\n\r\n", "not a valid HTTP request"),
        ],
        ids=lambda part: repr(part[:40]),
    )
    def test_is_a_400_that_does_not_repeat_the_input(self, service: Service, sent: bytes, words: str) -> None:
        with connected(service) as connection:
            connection.sendall(sent)
            answer = answer_of(connection)
        refused(answer, 400)
        error = json.loads(answer.partition("\r\n\r\n")[2])["error"]
        assert error["code"] == "invalid_header" and words in error["message"]
        assert error["doc_url"] == f"{service.base_url}/api/docs#error-invalid_header"
        assert "secret" not in answer
