"""No request reaches a canary server on loopback, with any spelling of its address or with any host name."""

import socket
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from aiohttp.abc import ResolveResult

from tests.webhooks.receivers.canary import LITERALS, ODD, Canary, listening
from tests.webhooks.receivers.receiving import BODY, HEADERS, TLS, Names, answering, receiving
from tests.webhooks.urls import forbidden
from webhooks import transport

NOT_ALLOWED = "address not allowed"
NOT_VALID = "the URL is not valid"
NOT_SENT = "the request could not be sent"
UNKNOWN = "the host name could not be resolved"


@pytest.fixture
def canary() -> Iterator[Canary]:
    with listening() as canary:
        yield canary


def post(
    canary: Canary,
    hosts: Sequence[str],
    names: Names | None = None,
    *,
    scheme: str = "http",
    allow_loopback: bool = False,
) -> dict[str, str | None]:
    """For each of `hosts`, send a POST to the canary's port. Return the error message for each host."""

    async def scenario() -> dict[str, str | None]:
        async with transport.open_pool(allow_loopback=allow_loopback, tls=TLS, names=names) as pool:
            urls = {host: f"{scheme}://{host}:{canary.port}/" for host in hosts}
            answers = {
                host: await transport.post(pool, url, HEADERS, BODY, deadline_seconds=3)
                for host, url in urls.items()
            }
            return {host: answer.error_message for host, answer in answers.items()}

    return transport.run(scenario())


class Fickle(dict[str, Any]):
    """A DNS answer that has a public address when it is read first, and a loopback address when it is read again."""

    def __getitem__(self, field: str) -> Any:
        value = super().__getitem__(field)
        if field == "host":
            self["host"] = "127.0.0.1"
        return value


class FickleNames(Names):
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found: list[Any] = [Fickle(each) for each in await super().resolve(host, port, family)]
        return found


class TestSending:
    def test_reaches_the_canary_only_where_loopback_is_allowed(self, canary: Canary) -> None:
        """Check that the canary is running. Otherwise, the refused requests below would prove little."""
        spellings = ["127.0.0.1", "[::1]", "localhost"]
        assert set(post(canary, spellings, allow_loopback=True).values()) == {None}
        assert canary.visits == 3
        assert set(post(canary, spellings).values()) == {NOT_ALLOWED}
        assert canary.visits == 3

    @pytest.mark.rule("target.every_address")
    def test_refuses_every_internal_address_literal(self, canary: Canary) -> None:
        assert post(canary, LITERALS) == dict.fromkeys(LITERALS, NOT_ALLOWED)
        assert canary.visits == 0

    @pytest.mark.parametrize("allow_loopback", [False, True])
    def test_refuses_zero_and_mapped_addresses_even_where_loopback_is_allowed(
        self, allow_loopback: bool, canary: Canary
    ) -> None:
        spellings = ["0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "[::127.0.0.1]"]
        assert set(post(canary, spellings, allow_loopback=allow_loopback).values()) == {NOT_ALLOWED}
        assert canary.visits == 0

    def test_never_reaches_the_canary_by_an_unusual_spelling(self, canary: Canary) -> None:
        assert set(post(canary, ODD).values()) <= {NOT_ALLOWED, NOT_VALID, UNKNOWN, NOT_SENT}
        assert canary.visits == 0

    @pytest.mark.parametrize("scheme", ["http", "https"])
    def test_refuses_a_name_that_resolves_to_an_internal_address(self, scheme: str, canary: Canary) -> None:
        for address in forbidden.INTERNAL:
            got = post(canary, ["shop.example.com", "127.0.0.1.nip.io"], Names([address]), scheme=scheme)
            assert set(got.values()) == {NOT_ALLOWED}, address
        assert canary.visits == 0

    @pytest.mark.rule("target.every_address")
    def test_refuses_a_name_that_resolves_to_public_and_internal_addresses(self, canary: Canary) -> None:
        for mixed in (["1.1.1.1", "127.0.0.1"], ["127.0.0.1", "1.1.1.1"], ["2606:4700::1", "::1"]):
            assert post(canary, ["shop.example.com"], Names(mixed)) == {"shop.example.com": NOT_ALLOWED}
        assert canary.visits == 0

    @pytest.mark.rule("target.each_connection")
    def test_refuses_a_name_whose_address_changes_before_the_connection(self, canary: Canary) -> None:
        names = FickleNames(["1.1.1.1"])
        assert post(canary, ["shop.example.com"], names) == {"shop.example.com": NOT_ALLOWED}
        assert (names.asked, canary.visits) == (1, 0)

    def test_resolves_the_name_again_for_each_connection(self, canary: Canary) -> None:
        names = Names(["127.0.0.1"], ["10.0.0.1"])
        assert post(canary, ["a.example.com", "a.example.com."], names, allow_loopback=True) == {
            "a.example.com": None,
            "a.example.com.": NOT_ALLOWED,
        }
        assert (names.asked, canary.visits) == (2, 1)

    @pytest.mark.rule("target.checks")
    def test_says_that_a_name_has_no_address_without_naming_a_server(self, canary: Canary) -> None:
        assert post(canary, ["shop.example.com"], Names([])) == {"shop.example.com": UNKNOWN}


@pytest.mark.rule("target.redirects")
class TestRedirects:
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_count_as_responses_and_are_never_followed(self, status: int, canary: Canary) -> None:
        """Check that redirects are not followed, even if the address check would allow their targets."""
        places = [
            *(
                f"http://127.0.0.1:{canary.port}/",
                f"//127.0.0.1:{canary.port}/x",
                f"http://[::1]:{canary.port}",
            ),
            *("/elsewhere", "", "gopher://127.0.0.1", "http://[", f"http://0.0.0.0:{canary.port}/"),
        ]

        async def scenario() -> list[tuple[int | None, str | None, int]]:
            seen = []
            for place in places:
                head = f"HTTP/1.1 {status} Away\r\nLocation: {place}\r\nRefresh: 0; url={place}\r\n"
                async with receiving(answering(f"{head}Content-Length: 0\r\n\r\n".encode())) as receiver:
                    async with transport.open_pool(allow_loopback=True, tls=TLS) as pool:
                        url = f"http://127.0.0.1:{receiver.port}/"
                        answer = await transport.post(pool, url, HEADERS, BODY)
                seen.append((answer.http_status, answer.error_message, len(receiver.requests)))
            return seen

        assert transport.run(scenario()) == [(status, f"HTTP {status}", 1)] * len(places)
        assert canary.visits == 0
