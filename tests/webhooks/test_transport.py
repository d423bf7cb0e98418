"""One POST against real servers on this machine: friendly, slow, broken, hostile and forbidden ones."""

import asyncio
import contextlib
import datetime
import gzip
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from webhooks import transport

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nthanks"
Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Receiver:
    """A server that behaves as it is told and counts what reaches it."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.port = 0
        self.connections = 0
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                first = await reader.readexactly(1)
                if first != b"P":  # a TLS greeting gets plain words, as from any server without TLS
                    writer.write(OK)
                    break
                head = first + await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                await self.behaviour(reader, writer)
        writer.close()


@contextlib.asynccontextmanager
async def receiving(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver(behaviour)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()


def answering(answer: bytes) -> Behaviour:
    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    return behave


def dribbling(beginning: bytes, drop: bytes) -> Behaviour:
    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(beginning)
        while True:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0.02)

    return behave


async def closing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


def posted(
    behaviour: Behaviour, *, deadline_seconds: float = 5, allow_loopback: bool = True
) -> tuple[transport.Answer, Receiver]:
    """The answer to one POST to a receiver of this behaviour, and the receiver."""

    async def scenario() -> tuple[transport.Answer, Receiver]:
        async with receiving(behaviour) as receiver:
            async with transport.open_session(allow_loopback=allow_loopback) as session:
                url = f"http://127.0.0.1:{receiver.port}/hooks?x=%2F"
                headers = {"Content-Type": "application/json", "X-Service-Event-Id": "evt_1"}
                body = b'{"id": "evt_1"}'
                answer = await transport.post(session, url, headers, body, deadline_seconds=deadline_seconds)
            return answer, receiver

    return asyncio.run(scenario())


class TestVerdict:
    @pytest.mark.parametrize("status", [200, 201, 204])
    def test_a_2xx_has_no_error(self, status: int) -> None:
        answer, _ = posted(answering(f"HTTP/1.1 {status} Fine\r\nContent-Length: 0\r\n\r\n".encode()))
        assert (answer.http_status, answer.error_message, answer.excerpt) == (status, None, "")

    def test_keeps_the_beginning_of_the_body(self) -> None:
        answer, _ = posted(answering(OK))
        assert answer.excerpt == "thanks"
        assert 0 <= answer.duration_ms < 5000

    @pytest.mark.parametrize("status", [400, 404, 410, 429, 500, 503])
    def test_another_answer_is_named_by_its_status(self, status: int) -> None:
        answer, _ = posted(answering(f"HTTP/1.1 {status} No\r\nContent-Length: 2\r\n\r\nno".encode()))
        assert (answer.http_status, answer.error_message, answer.excerpt) == (status, f"HTTP {status}", "no")

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_a_redirect_is_an_answer_and_is_not_followed(self, status: int) -> None:
        head = f"HTTP/1.1 {status} Away\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
        answer, receiver = posted(answering(head.encode()))
        assert (answer.http_status, answer.error_message) == (status, f"HTTP {status}")
        assert len(receiver.requests) == 1


class TestRequest:
    def test_carries_the_exact_bytes_and_asks_for_no_compression(self) -> None:
        _, receiver = posted(answering(OK))
        head, body = receiver.requests[0].split(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        assert lines[0] == b"POST /hooks?x=%2F HTTP/1.1"
        assert {b"Accept-Encoding: identity", b"X-Service-Event-Id: evt_1"} <= set(lines)
        assert body == b'{"id": "evt_1"}'

    def test_uses_no_proxy_of_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        answer, _ = posted(answering(OK))
        assert answer.http_status == 200

    def test_sends_no_cookie_back(self) -> None:
        async def scenario() -> list[bytes]:
            with_cookie = OK.replace(b"\r\n\r\n", b"\r\nSet-Cookie: a=b\r\n\r\n")
            async with receiving(answering(with_cookie)) as receiver:
                async with transport.open_session(allow_loopback=True) as session:
                    for _ in range(2):
                        await transport.post(session, f"http://127.0.0.1:{receiver.port}/", {}, b"{}")
                return receiver.requests

        assert not any(b"cookie" in request.lower() for request in asyncio.run(scenario()))


class TestSlowness:
    @pytest.mark.parametrize(
        "behaviour",
        [
            dribbling(b"", b""),
            dribbling(b"HTTP/1.1 200 OK\r\nX-A: ", b"a"),
            dribbling(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ],
        ids=["silence", "dribbled headers", "endless continue"],
    )
    def test_ends_at_the_deadline_however_the_receiver_dribbles(self, behaviour: Behaviour) -> None:
        answer, _ = posted(behaviour, deadline_seconds=0.3)
        assert (answer.http_status, answer.error_message) == (None, "timeout after 0.3 s")
        assert 290 <= answer.duration_ms < 1500

    def test_a_dribbled_body_does_not_change_the_verdict(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transport, "BODY_SECONDS", 0.2)
        answer, _ = posted(dribbling(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"a"))
        assert (answer.http_status, answer.error_message) == (200, None)
        assert answer.excerpt.startswith("aa")
        assert 190 <= answer.duration_ms < 1500

    def test_the_body_gets_what_is_left_of_the_deadline(self) -> None:
        slow_body = dribbling(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"a")
        answer, _ = posted(slow_body, deadline_seconds=0.3)
        assert answer.http_status == 200
        assert answer.duration_ms < 1200


class TestHostileAnswers:
    def test_reads_a_huge_body_only_a_little(self) -> None:
        sent = 0

        async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n")
            while True:
                writer.write(b"a" * 65536)
                await writer.drain()
                sent += 65536

        answer, _ = posted(flood)
        assert (answer.http_status, answer.excerpt) == (200, "a" * 1024)
        assert sent < 20_000_000

    @pytest.mark.parametrize(
        "body",
        [b"Content-Length: 100\r\n\r\nhalf", b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"],
        ids=["cut", "bad chunk"],
    )
    def test_a_broken_body_does_not_change_the_verdict(
        self, body: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transport, "BODY_SECONDS", 0.2)

        async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head, rest = body.split(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
            await asyncio.sleep(0.05)
            writer.write(rest)
            writer.close()

        answer, _ = posted(behave)
        assert (answer.http_status, answer.error_message) == (200, None)

    def test_never_decompresses(self) -> None:
        bomb = gzip.compress(b"a" * 1_000_000)
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n"
        answer, _ = posted(answering(head.encode() + bomb))
        assert answer.http_status == 200
        assert "aaaa" not in answer.excerpt

    def test_keeps_only_text_that_a_database_takes(self) -> None:
        body = b"a\x00b\x1b[31m\xff\n" + "é".encode() * 2000
        head = f"HTTP/1.1 500 No\r\nContent-Length: {len(body)}\r\n\r\n"
        answer, _ = posted(answering(head.encode() + body))
        assert answer.excerpt.startswith("a\ufffdb\ufffd[31m\ufffd\né")
        assert len(answer.excerpt.encode()) <= 1024

    @pytest.mark.parametrize(
        "answer",
        [
            *(b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 abc OK\r\n\r\n"),
            b"HTTP/1.1 200 OK\r\nX: " + b"a" * 99999 + b"\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: a\r\n" % number for number in range(50_000)) + b"\r\n",
        ],
        ids=["another protocol", "no status", "endless header", "too many headers"],
    )
    def test_calls_what_is_no_http_by_its_name(self, answer: bytes) -> None:
        got, _ = posted(answering(answer), deadline_seconds=2)
        assert (got.http_status, got.error_message) == (None, "the answer was not valid HTTP")

    def test_a_connection_closed_before_an_answer_is_posted_to_once(self) -> None:
        answer, receiver = posted(closing)
        assert (answer.http_status, answer.error_message) == (
            None,
            "the connection was closed before an answer",
        )
        assert receiver.connections == 1

    def test_nobody_listening_is_no_connection(self) -> None:
        async def scenario() -> transport.Answer:
            async with transport.open_session(allow_loopback=True) as session:
                return await transport.post(session, f"http://127.0.0.1:{free_port()}/", {}, b"{}")

        answer = asyncio.run(scenario())
        assert (answer.http_status, answer.error_message) == (None, "could not connect")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class TestConnections:
    def test_are_kept_for_the_next_delivery(self) -> None:
        assert self.connections_for_two_posts(answering(OK)) == ([200, 200], 1)

    def test_that_the_receiver_drops_while_idle_are_replaced_within_the_attempt(self) -> None:
        posts = 0

        async def drop_every_second(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal posts
            posts += 1
            if posts == 2:
                writer.transport.abort()
            else:
                writer.write(OK)

        assert self.connections_for_two_posts(drop_every_second) == ([200, 200], 2)

    def test_are_not_reused_after_an_unread_body(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transport, "BODY_SECONDS", 0.05)
        slow = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf")
        assert self.connections_for_two_posts(slow) == ([200, 200], 2)

    def test_end_with_their_session_which_is_renewed_in_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transport, "SESSION_SECONDS", 0.0)

        async def scenario() -> tuple[int, list[bool]]:
            sessions = transport.Sessions(allow_loopback=True)
            async with receiving(answering(OK)) as receiver:
                used = []
                for _ in range(3):
                    used.append(await sessions.current())
                    await transport.post(used[-1], f"http://127.0.0.1:{receiver.port}/", {}, b"{}")
                open_before_close = [not session.closed for session in used]
                await sessions.close()
                assert all(session.closed for session in used)
                return receiver.connections, open_before_close

        assert asyncio.run(scenario()) == (3, [False, True, True])

    def test_keep_their_session_until_then(self) -> None:
        async def scenario() -> bool:
            sessions = transport.Sessions(allow_loopback=True)
            same = await sessions.current() is await sessions.current()
            await sessions.close()
            return same

        assert asyncio.run(scenario())

    def connections_for_two_posts(self, behaviour: Behaviour) -> tuple[list[int | None], int]:
        async def scenario() -> tuple[list[int | None], int]:
            async with receiving(behaviour) as receiver:
                async with transport.open_session(allow_loopback=True) as session:
                    url = f"http://127.0.0.1:{receiver.port}/"
                    answers = [await transport.post(session, url, {}, b"{}") for _ in range(2)]
                return [answer.http_status for answer in answers], receiver.connections

        return asyncio.run(scenario())


class Names(AbstractResolver):
    """A name server that knows one answer; an empty one is a failure."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if not self.addresses:
            raise OSError("no such name on 10.9.8.7")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in self.addresses
        ]

    async def close(self) -> None:
        pass


def refused(host: str, *addresses: str) -> tuple[str | None, int]:
    """The error of a POST to `host`, which resolves to `addresses`, and how often a canary was reached."""

    async def scenario() -> tuple[str | None, int]:
        async with receiving(answering(OK)) as canary:
            async with transport.open_session(allow_loopback=False, names=Names(*addresses)) as session:
                answer = await transport.post(session, f"http://{host}:{canary.port}/", {}, b"{}")
            assert answer.http_status is None
            return answer.error_message, canary.connections

    return asyncio.run(scenario())


class TestForbiddenAddresses:
    @pytest.mark.parametrize("literal", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "10.0.0.1"])
    def test_a_literal_is_never_connected_to(self, literal: str) -> None:
        assert refused(literal) == ("address not allowed", 0)

    @pytest.mark.parametrize("spelling", ["127.1", "2130706433", "0x7f.1", "0177.0.0.1"])
    def test_an_odd_spelling_never_leads_to_loopback(self, spelling: str) -> None:
        message, connections = refused(spelling)
        assert message is not None and connections == 0

    def test_a_name_that_leads_inside_is_never_connected_to(self) -> None:
        assert refused("shop.example.com", "127.0.0.1") == ("address not allowed", 0)

    def test_a_mixed_answer_is_refused_whole(self) -> None:
        assert refused("shop.example.com", "1.1.1.1", "127.0.0.1") == ("address not allowed", 0)

    def test_a_name_without_address_is_said_so_without_naming_a_server(self) -> None:
        assert refused("shop.example.com") == ("the host name could not be resolved", 0)


def certificate(
    folder: Path, *, host: str = "shop.example.com", days: int = 1
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a self-signed certificate, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.9"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=10))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "pair.pem").write_bytes(secret + signed.public_bytes(pem))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "pair.pem")
    client = transport.tls_context()
    client.load_verify_locations(folder / "pair.pem")
    return server, client


def posted_by_tls(server: ssl.SSLContext | None, client: ssl.SSLContext | None) -> transport.Answer:
    async def scenario() -> transport.Answer:
        names = Names("127.0.0.1")
        async with receiving(answering(OK), server) as receiver:
            async with transport.open_session(allow_loopback=True, tls=client, names=names) as session:
                url = f"https://shop.example.com:{receiver.port}/"
                return await transport.post(session, url, {}, b"{}", deadline_seconds=5)

    return asyncio.run(scenario())


class TestTls:
    def test_delivers_to_a_trusted_certificate_of_the_host_name(self, tmp_path: Path) -> None:
        assert posted_by_tls(*certificate(tmp_path)).http_status == 200

    def test_refuses_a_self_signed_certificate(self, tmp_path: Path) -> None:
        server, _ = certificate(tmp_path)
        assert posted_by_tls(server, None).error_message == "TLS: the certificate is not trusted"

    def test_refuses_an_expired_certificate(self, tmp_path: Path) -> None:
        answer = posted_by_tls(*certificate(tmp_path, days=-1))
        assert answer.error_message == "TLS: the certificate has expired"

    def test_refuses_a_certificate_of_another_host(self, tmp_path: Path) -> None:
        answer = posted_by_tls(*certificate(tmp_path, host="rival.example.com"))
        assert answer.error_message == "TLS: the certificate is for another host"

    def test_refuses_tls_1_1_and_older(self) -> None:
        assert transport.tls_context().minimum_version == ssl.TLSVersion.TLSv1_2

    def test_names_a_receiver_that_speaks_no_tls(self) -> None:
        assert posted_by_tls(None, None).error_message == "TLS: the handshake failed"
