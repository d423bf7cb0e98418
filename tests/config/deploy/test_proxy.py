"""nginx with the shipped configuration, but without the service behind it: what it refuses and answers itself."""

import contextlib
import http.client
import json
import os
import socket
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from config.deploy import make_env
from config.errors import ERRORS
from tests.config.deploy import proxy
from tests.config.deploy.installation import free_port, until

pytestmark = [pytest.mark.long, pytest.mark.rule("environment.proxy")]
MAX_CONNECTIONS = 200  # requests of one caller, as in nginx.conf.template


class Proxy(NamedTuple):
    http: int
    https: int
    web: int  # the port on which nginx expects the service

    def get(self, path: str, *, source: str = "127.0.0.1") -> tuple[int, dict[str, str], str]:
        """Return a response's status, its headers in lower case, and its body."""
        connection = http.client.HTTPSConnection(
            "localhost", self.https, timeout=10, context=unverified(), source_address=(source, 0)
        )
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            headers = [(name.lower(), value) for name, value in answer.getheaders()]
            assert len(headers) == len(dict(headers)), "no header is sent twice"
            return answer.status, dict(headers), answer.read().decode()


def unverified(maximum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    context = ssl._create_unverified_context()
    context.maximum_version = maximum
    return context


@pytest.fixture(scope="module")
def nginx() -> Iterator[Proxy]:
    with tempfile.TemporaryDirectory(prefix="checkout-proxy-") as folder:
        os.chmod(folder, 0o755)  # nginx's workers run as another user
        with running(Path(folder)) as made:
            yield made


@contextlib.contextmanager
def running(folder: Path, web: str = "") -> Iterator[Proxy]:
    """Run nginx with the folders in `folder`. `web` is the address of web, by default a free port."""
    make_env.write(folder, "localhost")
    kept = folder / "kept"
    kept.mkdir()
    kept.chmod(0o777)
    http_port, https, port = free_port(), free_port(), free_port()
    command = proxy.command(kept, folder / ".tls", web=web or port, http=http_port, https=https)
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    made = Proxy(int(http_port), int(https), int(port))
    try:
        until(lambda: is_open(made.https))
        yield made
    finally:
        process.terminate()
        process.wait(10)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def service(nginx: Proxy) -> Iterator[None]:
    """A service that answers each request with its own HSTS header."""
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nStrict-Transport-Security: max-age=1\r\n"
        b"Connection: close\r\n\r\nok"
    )
    with socket.create_server(("127.0.0.1", nginx.web)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(65_536)
                        connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


class TestServiceAway:
    def test_an_api_call_gets_the_error_shape_of_the_api(self, nginx: Proxy) -> None:
        status, headers, body = nginx.get("/api/merchant/v1/checkouts")
        assert (status, headers["content-type"], headers["retry-after"]) == (503, "application/json", "1")
        assert headers["cache-control"] == "no-store"
        error = json.loads(body)["error"]
        row = ERRORS["service_unavailable"]
        assert (error["code"], error["message"], row.status) == ("service_unavailable", row.message, 503)
        assert set(error) == {"code", "message", "param", "details", "request_id", "doc_url"}
        assert error["request_id"].startswith("req_") and len(error["request_id"]) == 36
        assert error["doc_url"] == "https://localhost/api/docs#error-service_unavailable"

    def test_a_payer_gets_a_page_that_says_what_to_do(self, nginx: Proxy) -> None:
        status, headers, body = nginx.get("/pay?id=1")
        assert status == 503 and headers["content-type"] == "text/html"
        assert "Open it again in a minute. If you were paying, read the page before you pay again." in body

    def test_an_internal_address_is_not_public(self, nginx: Proxy) -> None:
        assert nginx.get("/nginx/busy/json")[0] == 404


@pytest.mark.usefixtures("service")
class TestServiceThere:
    def test_hsts_is_sent_once(self, nginx: Proxy) -> None:
        status, headers, body = nginx.get("/pay")
        assert (status, body) == (200, "ok")
        assert headers["strict-transport-security"] == "max-age=31536000; includeSubDomains; preload"

    @pytest.mark.parametrize("path", ["/metrics", "/readyz"])
    def test_probes_are_not_public(self, nginx: Proxy, path: str) -> None:
        assert nginx.get(path)[0] == 404

    def test_slow_bodies_of_one_caller_do_not_block_another(self, nginx: Proxy) -> None:
        head = b"POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nslow"
        with contextlib.ExitStack() as stack:
            for _ in range(MAX_CONNECTIONS):
                plain = socket.create_connection(("127.0.0.1", nginx.https), 10)
                secure = stack.enter_context(unverified().wrap_socket(plain, server_hostname="localhost"))
                secure.sendall(head)
            until(lambda: nginx.get("/api/x")[0] == 429)
            status, headers, body = nginx.get("/api/x")
            error = json.loads(body)["error"]
            assert (error["code"], error["message"]) == ("rate_limited", ERRORS["rate_limited"].message)
            assert status == 429 and headers["retry-after"] == "1"
            assert nginx.get("/pay", source="127.0.0.2")[0] == 200


class TestForeignHost:
    def test_is_closed_without_an_answer(self, nginx: Proxy) -> None:
        with socket.create_connection(("127.0.0.1", nginx.http), 10) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            assert plain.recv(100) == b""

    def test_is_refused_before_the_handshake_ends(self, nginx: Proxy) -> None:
        plain = socket.create_connection(("127.0.0.1", nginx.https), 10)
        with plain, pytest.raises(ssl.SSLError):
            unverified().wrap_socket(plain, server_hostname="evil.example")

    def test_in_the_header_only_is_closed_too(self, nginx: Proxy) -> None:
        plain = socket.create_connection(("127.0.0.1", nginx.https), 10)
        with unverified().wrap_socket(plain, server_hostname="localhost") as secure:
            secure.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            assert secure.recv(100) == b""


class TestTls:
    @pytest.mark.parametrize("cipher", ["AES128-SHA", "AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-SHA"])
    def test_an_old_cipher_is_refused(self, nginx: Proxy, cipher: str) -> None:
        context = unverified(ssl.TLSVersion.TLSv1_2)
        context.set_ciphers(f"{cipher}:@SECLEVEL=0")
        plain = socket.create_connection(("127.0.0.1", nginx.https), 10)
        with plain, pytest.raises(ssl.SSLError):
            context.wrap_socket(plain, server_hostname="localhost")

    def test_http_2_and_ipv6_are_served(self, nginx: Proxy) -> None:
        shown = subprocess.run(
            [
                "curl",
                "-sk",
                "-o",
                "/dev/null",
                "-w",
                "%{http_version}",
                f"https://localhost:{nginx.https}/pay",
                "-6",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        assert shown.stdout == "2"

    def test_plain_http_leads_to_https(self, nginx: Proxy) -> None:
        with socket.create_connection(("127.0.0.1", nginx.http), 10) as plain:
            plain.sendall(b"GET /pay HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"Location: https://localhost/pay" in plain.recv(1000)


def serve_once(path: Path, body: str) -> threading.Thread:
    """Answer one request on a new socket, which replaces the socket at this path."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o777)
    listener.listen()

    def serve() -> None:
        with listener:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                connection.sendall((head + body).encode())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def test_a_new_container_of_web_is_reached_without_a_reload() -> None:
    """In Compose, nginx reaches web through a socket.

    A new container replaces the socket, but the path stays the same.
    """
    with tempfile.TemporaryDirectory(prefix="checkout-proxy-") as folder:
        os.chmod(folder, 0o755)
        path = Path(folder) / "web.sock"
        with running(Path(folder), web=f"unix:{path}") as nginx:
            for body in ("former", "current"):
                thread = serve_once(path, body)
                assert nginx.get("/pay")[::2] == (200, body)
                thread.join(5)
