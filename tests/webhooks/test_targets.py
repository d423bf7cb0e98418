"""The addresses to which webhooks can be sent.

Every address in a special block is refused, however it is written. No public address is refused.
"""

import asyncio
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhooks.receivers.receiving import Names
from tests.webhooks.urls import forbidden
from webhooks import targets

IPv4 = ipaddress.IPv4Address
IPv6 = ipaddress.IPv6Address
Address = IPv4 | IPv6
# IPv6 addresses that contain an IPv4 address. Each entry has the prefix, and the number of bits after the
# IPv4 address.
CARRIERS = [
    ("::", 0),  # v4-compatible
    ("::ffff:0:0", 0),  # v4-mapped
    ("::ffff:0:0:0", 0),  # SIIT
    ("64:ff9b::", 0),  # NAT64
    ("64:ff9b:1::", 0),  # NAT64 within one network
    ("2002::", 80),  # 6to4
    ("2001::", 64),  # Teredo's server
    ("2a00:1450::5efe:0:0", 0),  # ISATAP
    ("2a00:1450::200:5efe:0:0", 0),  # ISATAP with the bit for global IPv4 addresses
    ("fe80::5efe:0:0", 0),
]
TEREDO_CLIENT = int(IPv6("2001:0:4136:e378::")), 0xFFFFFFFF  # Teredo inverts the bits of the client's address


def addresses_of_blocks() -> st.SearchStrategy[Address]:
    return st.sampled_from(forbidden.BLOCKS).flatmap(
        lambda block: st.one_of(st.ip_addresses(network=block), st.sampled_from([block[0], block[-1]]))
    )


def carried(inner: IPv4) -> list[IPv6]:
    prefix, inversion = TEREDO_CLIENT
    inside = [IPv6(int(IPv6(start)) | int(inner) << bits) for start, bits in CARRIERS]
    return [*inside, IPv6(prefix | int(inner) ^ inversion)]


def spellings(address: Address) -> set[str]:
    """Return all spellings of the address: those of the standard library, and others."""
    texts = {str(address), address.exploded, str(address).upper(), address.exploded.upper()}
    if isinstance(address, IPv6):
        low = IPv4(int(address) & 0xFFFFFFFF)
        head = ":".join(address.exploded.split(":")[:6])
        texts |= {f"{head}:{low}", f"{address}%1", f"{address}%eth0"}
    return texts


class TestIsPublic:
    def test_refuses_every_special_or_invalid_address(self) -> None:
        listed = [*forbidden.INTERNAL, *forbidden.NO_ADDRESS]
        assert [address for address in listed if targets.is_public(address)] == []

    def test_accepts_global_addresses(self) -> None:
        assert [address for address in forbidden.PUBLIC if not targets.is_public(address)] == []

    @pytest.mark.rule("target.every_address")
    @given(address=addresses_of_blocks())
    def test_refuses_all_of_every_special_block_in_any_spelling(self, address: Address) -> None:
        assert [text for text in spellings(address) if targets.is_public(text)] == []

    @given(inner=st.ip_addresses(v=4))
    def test_refuses_an_ipv4_address_inside_an_ipv6_one(self, inner: IPv4) -> None:
        found = {text for outer in carried(inner) for text in spellings(outer) if targets.is_public(text)}
        assert found == set()

    @given(address=st.one_of(st.ip_addresses(), st.ip_addresses(v=6, network="2000::/3")))
    def test_accepts_exactly_the_addresses_outside_special_blocks(self, address: Address) -> None:
        in_a_block = any(address in block for block in forbidden.BLOCKS if block.version == address.version)
        is_elsewhere = isinstance(address, IPv6) and address not in targets.GLOBAL_V6
        is_isatap = isinstance(address, IPv6) and (int(address) >> 32) & 0xFDFFFFFF == 0x5EFE
        assert targets.is_public(str(address)) is not (in_a_block or is_elsewhere or is_isatap)

    @given(address=st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6, network="2000::/3")))
    def test_is_stricter_than_the_standard_library_and_never_laxer(self, address: Address) -> None:
        """Check that we refuse every address that `is_global` refuses.

        We also refuse some addresses that `is_global` accepts: multicast, 6to4 and some smaller blocks.
        """
        if not address.is_global:
            assert not targets.is_public(str(address))
        elif not targets.is_public(str(address)):
            besides = [block for block in forbidden.BLOCKS if block.version == address.version]
            is_isatap = isinstance(address, IPv6) and (int(address) >> 32) & 0xFDFFFFFF == 0x5EFE
            assert is_isatap or any(address in block for block in besides)


class TestIsAllowed:
    @pytest.mark.rule("target.loopback")
    @pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1"])
    def test_accepts_loopback_only_if_it_is_allowed(self, address: str) -> None:
        assert targets.is_allowed(address, allow_loopback=True)
        assert not targets.is_allowed(address, allow_loopback=False)

    def test_accepts_no_other_internal_address_even_then(self) -> None:
        listed = {*forbidden.INTERNAL, *forbidden.NO_ADDRESS} - forbidden.LOOPBACK
        assert {each for each in listed if targets.is_allowed(each, allow_loopback=True)} == set()


def resolve(addresses: list[str] | None) -> list[str]:
    resolver = targets.GuardedResolver(allow_loopback=False, names=Names(addresses))
    return [result["host"] for result in asyncio.run(resolver.resolve("shop.example.com"))]


class TestGuardedResolver:
    def test_returns_an_answer_with_only_public_addresses(self) -> None:
        assert resolve(["1.1.1.1", "2606:4700:4700::1111"]) == ["1.1.1.1", "2606:4700:4700::1111"]

    @pytest.mark.parametrize("position", [0, 1, 2])
    @pytest.mark.parametrize(
        "internal", ["127.0.0.1", "10.0.0.1", "::1", "::ffff:127.0.0.1", "fd00:ec2::254"]
    )
    def test_refuses_an_answer_with_any_forbidden_address(self, internal: str, position: int) -> None:
        mixed = ["1.1.1.1", "2606:4700:4700::1111"]
        mixed.insert(position, internal)
        with pytest.raises(targets.AddressRefused) as refused:
            resolve(mixed)
        assert internal not in str(refused.value)

    def test_gives_up_within_its_budget(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(targets, "RESOLVE_SECONDS", 0.05)
        with pytest.raises(OSError, match="too long"):
            resolve(None)
