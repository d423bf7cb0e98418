"""Which addresses and URLs a webhook may go to: every bad spelling that we know, and the good ones."""

import asyncio
import contextlib
import ipaddress
import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import given
from hypothesis import strategies as st

from webhooks import targets

INTERNAL = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1"),
    *("127.255.255.254", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.1"),
    *("192.0.0.8", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.1.1", "192.175.48.1"),
    *("198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1"),
    *("255.255.255.255", "100.100.100.200"),
    *("::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:7f00:1", "64:ff9b::7f00:1"),
    *("64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:7f00:1::", "2001:2::1", "2001:10::1"),
    *(
        "2001:20::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::1",
        "2620:4f:8000::1",
        "3ffe::1",
        "3fff::1",
    ),
    *("4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1"),
    *("2a00:1450::5efe:7f00:1", "2a00:1450::200:5efe:7f00:1", "2a00:1450::1%eth0"),
    *("", "localhost", "127.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433", "１２７.０.０.１", "8.8.8.8 "),
]
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.255.255.255"),
    *(
        "128.0.0.1",
        "169.253.0.1",
        "172.15.255.255",
        "172.32.0.1",
        "192.0.1.1",
        "198.17.0.1",
        "223.255.255.255",
    ),
    *("2001:200::1", "2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"),
]


BAD_URLS = [
    *[
        r"x",
        r"https:",
        r"https://",
        r"https:///x",
        r"//shop.example.com",
        r"https:shop.example.com",
        r"https://?x",
        r"https://:443/",
        r"http://shop.example.com/",
        r"ftp://shop.example.com/",
        r"javascript://shop.example.com/%0aalert",
        r"https://127.0.0.1/",
        r"https://8.8.8.8/",
        r"https://[::1]/",
        r"https://[2606:4700:4700::1111]/",
        r"https://[127.0.0.1]/",
        r"https://[::ffff:127.0.0.1]/",
        r"https://[fe80::1%25eth0]/",
        r"https://[v1.x]/",
        r"https://[::1]x.com/",
        r"https://[x.com/",
        r"https://2130706433/",
        r"https://0x7f.1/",
        r"https://0x7f000001/",
        r"https://0177.0.0.1/",
        r"https://127.1/",
        r"https://0/",
        r"https://127.0.0.1./",
        r"https://1.2.3.4.5/",
        r"https://a.0x7f/",
        r"https://１２７.０.０.１/",
        r"https://127。0。0。1/",
        r"https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
        r"https://ⓛocalhost/",
        r"https://localhost/",
        r"https://localhost./",
        r"https://LOCALHOST/",
        r"https://a.localhost/",
        r"https://intranet/",
        r"https://printer.local/",
        r"https://vault.internal/",
        r"https://x.onion/",
        r"https://router.home.arpa/",
        r"https://metadata.google.internal/",
        r"https://metadata.goog/",
        r"https://metadata.goog./",
        r"https://user@shop.example.com/",
        r"https://u:p@shop.example.com/",
        r"https://@shop.example.com/",
        r"https://:@shop.example.com/",
        r"https://shop.example.com@127.0.0.1/",
        r"https://shop.example.com/#x",
        r"https://shop.example.com/#",
        r"https://shop.example.com#@127.0.0.1/",
        r"https://shop.example.com:0/",
        r"https://shop.example.com:22/",
        r"https://shop.example.com:80/",
        r"https://shop.example.com:1023/",
        r"https://shop.example.com:65536/",
        r"https://shop.example.com:x/",
        r"https://shop.example.com:-1/",
        r"https://shop.example.com:443:443/",
        r"https://good.example.com\@127.0.0.1/",
        r"https://shop.example.com\x/",
        r"https://shop.example.com/\x",
        r"https://sh%6fp.example.com/",
        r"https://shop.example.com%2f@x.com/",
        r"https://shop%00.example.com/",
        r"https://shop..example.com/",
        r"https://.example.com/",
        r"https://-a.example.com/",
        r"https://a-.example.com/",
        r"https://sh_op.example.com/",
        r"https://shop.example.com../",
        r"https://xn--/",
    ],
    *("", "https://" + "a" * 64 + ".example.com/", "https://" + "a." * 130 + "com/"),
    *("https://shop.example.com/" + "a" * 2024, "https://shop.example.com/" + "ä" * 400),
    *(" https://shop.example.com/", "https://shop.example.com/ ", "https://shop.example.com/\r\nX: y"),
    *("https://shop.example.com/\t", "https://shop.example.com/\x00", "https://shop.example.com/\u2028"),
    *("https://sh op.example.com/", "https://\u202eshop.example.com/"),
]


class TestIsPublic:
    @pytest.mark.parametrize("address", INTERNAL)
    def test_refuses_every_special_address_and_odd_spelling(self, address: str) -> None:
        assert not targets.is_public(address)

    @pytest.mark.parametrize("address", PUBLIC)
    def test_takes_global_addresses(self, address: str) -> None:
        assert targets.is_public(address)

    @given(address=st.ip_addresses())
    def test_never_takes_what_the_standard_library_calls_private(
        self, address: ipaddress.IPv4Address | ipaddress.IPv6Address
    ) -> None:
        if address.is_private or address.is_multicast or address.is_reserved:
            assert not targets.is_public(str(address))

    @given(inner=st.ip_addresses(v=4), prefix=st.sampled_from(["::", "::ffff:", "64:ff9b::", "::ffff:0:"]))
    def test_never_takes_an_ipv4_address_inside_an_ipv6_one(
        self, inner: ipaddress.IPv4Address, prefix: str
    ) -> None:
        assert not targets.is_public(f"{prefix}{inner}")


class TestIsAllowed:
    @pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1"])
    def test_takes_loopback_only_where_it_is_allowed(self, address: str) -> None:
        assert targets.is_allowed(address, allow_loopback=True)
        assert not targets.is_allowed(address, allow_loopback=False)

    @pytest.mark.parametrize("address", sorted({*INTERNAL} - {"127.0.0.1", "127.255.255.254", "::1"}))
    def test_takes_nothing_else_that_is_internal_even_then(self, address: str) -> None:
        assert not targets.is_allowed(address, allow_loopback=True)


class TestCheckUrl:
    @pytest.mark.parametrize(
        ("url", "normal"),
        [
            ("https://shop.example.com/hooks", "https://shop.example.com/hooks"),
            ("HTTPS://Shop.Example.COM:443/a?b=1&c=%2F", "https://shop.example.com/a?b=1&c=/"),
            ("https://shop.example.com:8443/", "https://shop.example.com:8443/"),
            ("https://shop.example.com./hooks", "https://shop.example.com/hooks"),
            ("https://bücher.example.com/ä", "https://xn--bcher-kva.example.com/%C3%A4"),
            ("https://127.0.0.1.nip.io/", "https://127.0.0.1.nip.io/"),
            ("https://shop.example.com/a/../b", "https://shop.example.com/b"),
            ("https://shop.example.com/me@home/50%25", "https://shop.example.com/me@home/50%25"),
        ],
    )
    def test_writes_a_good_url_anew(self, url: str, normal: str) -> None:
        assert targets.check_url(url, allow_loopback=False) == normal
        assert targets.check_url(normal, allow_loopback=False) == normal

    @pytest.mark.parametrize("url", BAD_URLS)
    def test_refuses_each_bad_spelling(self, url: str) -> None:
        with pytest.raises(targets.TargetRefused):
            targets.check_url(url, allow_loopback=False)

    @pytest.mark.parametrize(
        "url",
        ["http://127.0.0.1:9000/hooks", "http://localhost:80/", "http://[::1]:9000/", "https://127.0.0.1/"],
    )
    def test_takes_loopback_where_it_is_allowed(self, url: str) -> None:
        assert targets.check_url(url, allow_loopback=True).startswith("http")
        with pytest.raises(targets.TargetRefused):
            targets.check_url(url, allow_loopback=False)

    @pytest.mark.parametrize(
        "url",
        ["http://shop.example.com/", "http://10.0.0.1/", "http://169.254.169.254/", "http://0.0.0.0:9000/",
         "http://[::ffff:127.0.0.1]:9000/", "http://2130706433/", "ftp://127.0.0.1/", "http://u@127.0.0.1/"],
    )  # fmt: skip
    def test_takes_http_and_addresses_towards_loopback_alone(self, url: str) -> None:
        with pytest.raises(targets.TargetRefused):
            targets.check_url(url, allow_loopback=True)

    @given(url=st.text(max_size=40).map("https://".__add__) | st.text(max_size=40))
    def test_either_refuses_or_returns_a_text_that_stays_the_same(self, url: str) -> None:
        with contextlib.suppress(targets.TargetRefused):
            normal = targets.check_url(url, allow_loopback=False)
            assert normal.isascii() and targets.check_url(normal, allow_loopback=False) == normal


class Names(AbstractResolver):
    """A name server with fixed answers; None never answers."""

    def __init__(self, addresses: list[str] | None) -> None:
        self.addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if self.addresses is None:
            await asyncio.sleep(60)
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self.addresses or ()
        ]

    async def close(self) -> None:
        pass


def resolve(addresses: list[str] | None, *, allow_loopback: bool = False) -> list[str]:
    resolver = targets.GuardedResolver(allow_loopback=allow_loopback, names=Names(addresses))
    return [result["host"] for result in asyncio.run(resolver.resolve("shop.example.com"))]


class TestGuardedResolver:
    def test_returns_an_answer_that_is_public_throughout(self) -> None:
        assert resolve(["1.1.1.1", "2606:4700:4700::1111"]) == ["1.1.1.1", "2606:4700:4700::1111"]

    @pytest.mark.parametrize("addresses", [["127.0.0.1"], ["1.1.1.1", "10.0.0.1"], ["1.1.1.1", "::1"]])
    def test_refuses_an_answer_with_any_forbidden_address(self, addresses: list[str]) -> None:
        with pytest.raises(targets.AddressRefused) as refused:
            resolve(addresses)
        assert not any(address in str(refused.value) for address in addresses)

    def test_gives_up_within_its_budget(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(targets, "RESOLVE_SECONDS", 0.05)
        with pytest.raises(OSError, match="too long"):
            resolve(None)


class TestVet:
    def test_takes_loopback_where_it_is_allowed(self) -> None:
        assert targets.vet("http://127.0.0.1:9000/x", allow_loopback=True) == "http://127.0.0.1:9000/x"
        assert targets.vet("http://localhost:9000/x", allow_loopback=True) == "http://localhost:9000/x"

    def test_refuses_a_name_that_does_not_resolve_in_words(self) -> None:
        with pytest.raises(targets.TargetRefused, match="could not be resolved"):
            targets.vet("https://shop.no-such-domain.invalid/", allow_loopback=False)

    def test_refuses_a_name_that_leads_inside_without_naming_the_address(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("aiohttp.AsyncResolver", lambda: Names(["10.1.2.3"]))
        with pytest.raises(targets.TargetRefused, match="publicly reachable") as refused:
            targets.vet("https://shop.example.com/", allow_loopback=False)
        assert "10.1" not in str(refused.value)
