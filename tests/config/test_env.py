"""Variables of the environment that hold lists."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env
from tests.config import starting

NAME = "WEBHOOK_SOURCE_ADDRESSES"


@pytest.mark.parametrize(
    ("value", "networks"),
    [
        ("203.0.113.7, 2001:db8::/48", ["203.0.113.7/32", "2001:db8::/48"]),
        ("198.51.100.0/24,", ["198.51.100.0/24"]),
        ("", []),
    ],
)
def test_networks_are_read(monkeypatch: pytest.MonkeyPatch, value: str, networks: list[str]) -> None:
    monkeypatch.setenv(NAME, value)
    assert env.networks(NAME) == networks


@pytest.mark.parametrize("value", ["nat.example", "203.0.113.7/24", "203.0.113.7 203.0.113.8", "10.0.0.256"])
def test_what_is_no_network_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(NAME, value)
    with pytest.raises(ImproperlyConfigured, match=f"^{NAME} holds IP addresses or networks such as"):
        env.networks(NAME)


@pytest.mark.rule("target.source_addresses")
def test_the_service_starts_only_with_networks() -> None:
    assert starting.refusal(starting.PRODUCTION | {NAME: "203.0.113.7"}) == ""
    assert "holds IP addresses" in starting.refusal(starting.PRODUCTION | {NAME: "nat.example"})
