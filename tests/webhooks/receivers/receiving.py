"""Receivers whose behaviour a test defines, name servers with fixed answers, and helpers that send a POST."""

import asyncio
import contextlib
import datetime
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from webhooks import transport

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nthanks"
HEADERS = {"Content-Type": "application/json", "User-Agent": "ours", "X-Service-Event-Id": "evt_1"}
BODY = b'{"id": "evt_1"}'
TLS = transport.tls_context()  # shared, because it takes long to create
# The errors that a receiver gets if the sender has closed the connection. If the receiver writes, uvloop
# raises RuntimeError.
HUNG_UP = (ConnectionError, RuntimeError, asyncio.IncompleteReadError, asyncio.CancelledError)
Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Receiver:
    """A server that counts connections and requests. It applies `behaviour` after each request.

    If `reads` is false, it applies `behaviour` without reading a request.
    """

    def __init__(self, behaviour: Behaviour, *, reads: bool = True) -> None:
        self.behaviour, self.reads = behaviour, reads
        self.port = 0
        self.connections = self.left = self.busy = 0
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(*HUNG_UP):
            if not self.reads:
                await self.behaviour(reader, writer)
            while self.reads and await self._has_read(reader, writer):
                self.busy += 1
                await self.behaviour(reader, writer)
                self.busy -= 1
        writer.close()
        self.left += 1

    async def _has_read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first = await reader.readexactly(1)
        if first != b"P":  # like any server without TLS, answer a TLS handshake with plain HTTP
            writer.write(OK)
            return False
        head = first + await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        self.requests.append(head + await reader.readexactly(length))
        return True


@contextlib.asynccontextmanager
async def receiving(
    behaviour: Behaviour, tls: ssl.SSLContext | None = None, *, reads: bool = True, host: str = "127.0.0.1"
) -> AsyncIterator[Receiver]:
    """Run a receiver on loopback. With `tls`, it uses TLS and does not answer clients without TLS."""
    receiver = Receiver(behaviour, reads=reads)
    server = await asyncio.start_server(receiver.serve, host, 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()


def answering(*packets: bytes, pause: float = 0.02) -> Behaviour:
    """Write the packets with a pause of `pause` seconds between them. Keep the connection open."""

    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number, packet in enumerate(packets):
            await asyncio.sleep(pause if number else 0)
            writer.write(packet)
            await writer.drain()

    return behave


async def post(
    receiver: Receiver, *, deadline_seconds: float = 5, allow_loopback: bool = True
) -> transport.Answer:
    """Send one POST over a new connection. Return the answer."""
    async with transport.open_pool(allow_loopback=allow_loopback, tls=TLS) as pool:
        url = f"http://127.0.0.1:{receiver.port}/hooks?x=%2F"
        return await transport.post(pool, url, HEADERS, BODY, deadline_seconds=deadline_seconds)


def posted(
    behaviour: Behaviour, *, deadline_seconds: float = 5, reads: bool = True
) -> tuple[transport.Answer, Receiver]:
    """Send one POST to a new receiver with this behaviour. Return the answer and the receiver."""

    async def scenario() -> tuple[transport.Answer, Receiver]:
        async with receiving(behaviour, reads=reads) as receiver:
            return await post(receiver, deadline_seconds=deadline_seconds), receiver

    return transport.run(scenario())


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Names(AbstractResolver):
    """A name server that returns each of `answers` once, in this order, and then repeats the last one.

    If an answer is an empty list, the lookup fails. If an answer is None, the lookup hangs.
    """

    def __init__(self, *answers: list[str] | None) -> None:
        self.answers = answers
        self.asked = 0
        self.hosts: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        self.hosts.append(host)
        if addresses is None:
            await asyncio.sleep(60)
        if not addresses:
            raise OSError("no such name on 10.9.8.7")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in addresses
        ]

    async def close(self) -> None:
        pass


def certificate(
    folder: Path, *, host: str = "shop.example.com", from_days: int = -10, to_days: int = 1
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return two contexts: a server's with a self-signed certificate, and a client's that trusts the certificate."""
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
        .not_valid_before(now + datetime.timedelta(days=from_days))
        .not_valid_after(now + datetime.timedelta(days=to_days))
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
