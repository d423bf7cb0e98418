"""The sender delivers to trusted receivers over TLS, and refuses all others."""

import asyncio
import ssl
from pathlib import Path

import pytest

from tests.webhooks.receivers import hostile
from tests.webhooks.receivers.hostile import RESET, Hostility
from tests.webhooks.receivers.receiving import (
    BODY,
    HEADERS,
    OK,
    TLS,
    Behaviour,
    Names,
    answering,
    certificate,
    receiving,
)
from webhooks import transport

HANDSHAKE_FAILED = "TLS: the handshake failed"
Contexts = tuple[ssl.SSLContext | None, ssl.SSLContext]


def posted(contexts: Contexts, *, host: str = "shop.example.com") -> transport.Answer:
    """Send a POST over HTTPS and return the answer.

    The receiver uses the first context, and the sender uses the second.
    """
    answer, _ = transport.run(exchange(contexts, answering(OK), host=host))
    return answer


def refused(contexts: Contexts) -> str | None:
    """Send a POST that must fail. Check that the receiver got no request, and return the reason for the failure."""
    answer, requests = transport.run(exchange(contexts, answering(OK)))
    assert (answer.http_status, requests) == (None, 0)
    return answer.error_message


async def exchange(
    contexts: Contexts,
    behaviour: Behaviour,
    *,
    host: str = "shop.example.com",
    reads: bool = True,
    deadline_seconds: float = 5,
) -> tuple[transport.Answer, int]:
    server, client = contexts
    async with receiving(behaviour, server, reads=reads) as receiver:
        names = Names(["127.0.0.1"])
        async with transport.open_pool(allow_loopback=True, tls=client, names=names) as pool:
            url = f"https://{host}:{receiver.port}/"
            answer = await transport.post(pool, url, HEADERS, BODY, deadline_seconds=deadline_seconds)
        return answer, len(receiver.requests)


@pytest.fixture
def trusted(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return certificate(tmp_path)


@pytest.mark.rule("target.tls")
class TestCertificate:
    def test_that_is_trusted_and_of_the_host_name_is_delivered_to(self, trusted: Contexts) -> None:
        answer = posted(trusted)
        assert (answer.http_status, answer.error_message) == (200, None)

    @pytest.mark.parametrize("host", ["xn--n3h.example", "xn--zca.example", "xn--a.example"])
    def test_is_requested_by_the_dns_form_of_the_name(self, host: str, tmp_path: Path) -> None:
        answer = posted(certificate(tmp_path, host=host), host=host)
        assert (answer.http_status, answer.error_message) == (200, None)

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_is_accepted_from_tls_1_2_on(
        self, version: ssl.TLSVersion, trusted: tuple[ssl.SSLContext, ssl.SSLContext]
    ) -> None:
        trusted[0].minimum_version = trusted[0].maximum_version = version
        assert posted(trusted).http_status == 200

    def test_that_is_self_signed_is_refused(self, trusted: Contexts) -> None:
        assert refused((trusted[0], TLS)) == "TLS: the certificate is not trusted"

    def test_that_has_expired_is_refused(self, tmp_path: Path) -> None:
        assert refused(certificate(tmp_path, to_days=-1)) == "TLS: the certificate has expired"

    def test_that_is_not_valid_yet_is_refused(self, tmp_path: Path) -> None:
        assert (
            refused(certificate(tmp_path, from_days=1, to_days=2)) == "TLS: the certificate is not valid yet"
        )

    @pytest.mark.parametrize("host", ["rival.example.com", "example.com", "*.shop.example.com"])
    def test_of_another_host_is_refused(self, host: str, tmp_path: Path) -> None:
        assert refused(certificate(tmp_path, host=host)) == "TLS: the certificate is for another host"

    def test_of_another_address_is_refused(self, trusted: Contexts) -> None:
        answer = posted(trusted, host="127.0.0.1")
        assert answer.error_message == "TLS: the certificate is for another host"


class TestHandshake:
    @pytest.mark.rule("target.tls")
    @pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
    @pytest.mark.parametrize("version", ["TLSv1", "TLSv1_1"])
    def test_with_old_tls_is_refused(
        self, version: str, trusted: tuple[ssl.SSLContext, ssl.SSLContext]
    ) -> None:
        server, client = trusted
        server.set_ciphers("ALL:@SECLEVEL=0")
        server.minimum_version = ssl.TLSVersion.TLSv1
        server.maximum_version = ssl.TLSVersion[version]
        client.set_ciphers("ALL:@SECLEVEL=0")
        assert refused((server, client)) == HANDSHAKE_FAILED
        client.minimum_version = ssl.TLSVersion.TLSv1
        # The TLS version was the only reason for the refusal.
        assert posted((server, client)).http_status == 200

    def test_that_is_answered_in_plain_http_is_refused(self) -> None:
        assert refused((None, TLS)) == HANDSHAKE_FAILED

    def test_that_requires_a_client_certificate_is_refused(
        self, trusted: tuple[ssl.SSLContext, ssl.SSLContext]
    ) -> None:
        trusted[0].verify_mode = ssl.CERT_REQUIRED
        trusted[0].maximum_version = ssl.TLSVersion.TLSv1_2
        assert refused(trusted) == HANDSHAKE_FAILED

    @pytest.mark.parametrize(
        "hostility",
        [
            Hostility("silence", hostile.forever(b"", pause=0.02), None, "timeout after 0.3 s"),
            Hostility("a dribbled record", hostile.forever(b"\x16", pause=0.02), None, HANDSHAKE_FAILED),
            Hostility("a long record", hostile.forever(b"\0", start=b"\x16\x03\x03\x40\0", pause=0.02), None,
                      "timeout after 0.3 s"),
            Hostility("a flood", hostile.forever(b"\0" * 65536, start=b"\x16\x03\x03\x40\0"), None,
                      HANDSHAKE_FAILED),
            Hostility("noise", answering(bytes(range(256))), None, HANDSHAKE_FAILED),
            Hostility("a reset", hostile.resetting(), None, HANDSHAKE_FAILED),
            Hostility("a close", hostile.closing(), None, HANDSHAKE_FAILED),
        ],
        ids=lambda hostility: hostility.name,
    )  # fmt: skip
    def test_that_gets_an_invalid_response_ends_in_time(self, hostility: Hostility) -> None:
        answer, _ = transport.run(
            exchange((None, TLS), hostility.behaviour, reads=False, deadline_seconds=0.3)
        )
        assert (answer.http_status, answer.error_message) == (None, hostility.error_message)


class TestSession:
    def test_sends_the_name_without_its_last_dot(
        self, trusted: tuple[ssl.SSLContext, ssl.SSLContext]
    ) -> None:
        asked = []
        trusted[0].sni_callback = lambda _, name, __: asked.append(name)
        assert posted(trusted, host="shop.example.com.").http_status == 200
        assert asked == ["shop.example.com"]

    def test_that_is_reset_after_the_headers_keeps_its_status(self, trusted: Contexts) -> None:
        async def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf")
            await asyncio.sleep(0.02)
            writer.get_extra_info("socket").setsockopt(*RESET)
            writer.transport.abort()

        answer, _ = transport.run(exchange(trusted, reset))
        assert (answer.http_status, answer.error_message, answer.excerpt) == (200, None, "half")

    def test_is_reused_for_the_next_delivery_unless_it_has_extra_data(self, trusted: Contexts) -> None:
        async def scenario() -> tuple[list[int | None], int]:
            server, client = trusted
            packets = iter([answering(OK), answering(OK + OK), answering(OK)])

            async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await next(packets)(reader, writer)

            async with receiving(behave, server) as receiver:
                names = Names(["127.0.0.1"])
                async with transport.open_pool(allow_loopback=True, tls=client, names=names) as pool:
                    url = f"https://shop.example.com:{receiver.port}/"
                    answers = [await transport.post(pool, url, HEADERS, BODY) for _ in range(3)]
                return [answer.http_status for answer in answers], receiver.connections

        assert transport.run(scenario()) == ([200, 200, 200], 2)
