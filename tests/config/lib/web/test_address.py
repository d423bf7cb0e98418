"""The caller's address is read correctly in every form in which a proxy can write it."""

from typing import Any

import pytest
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from config.lib.web import address
from payments.models import Merchant
from portal.models import AuditEntry
from tests.conftest import Api
from tests.hosted_page.browsers import PHONE, Payer
from tests.portal import people

PROXY = "10.0.0.9"
SEEN = [
    ("203.0.113.7", "203.0.113.7"),
    ("203.0.113.7:4711", "203.0.113.7"),
    (" 203.0.113.7:4711 ", "203.0.113.7"),
    ("[2001:db8::7]:4711", "2001:db8::7"),
    ("[2001:db8::7]", "2001:db8::7"),
    ('"[2001:db8::7]:4711"', "2001:db8::7"),
    ("2001:DB8:0::7", "2001:db8::7"),
    ("fe80::7%eth0", "fe80::7"),
    ("::ffff:203.0.113.7", "203.0.113.7"),
    ("198.51.100.1, 203.0.113.7:4711", "203.0.113.7"),
    ("unknown, 203.0.113.7", "203.0.113.7"),
    ("unknown", PROXY),
    ("203.0.113.7, unknown", PROXY),
    ("_hidden", PROXY),
    ("", PROXY),
    (" , ", PROXY),
    ("[", PROXY),
    ("[]:1", PROXY),
    (":", PROXY),
    ("203.0.113.7:4711:1", PROXY),
    ("999.0.0.1", PROXY),
    ("shop.example", PROXY),
    ("\u0661.2.3.4", PROXY),
    ("203.0.113.7'; DROP TABLE", PROXY),
    ("1" * 8_000, PROXY),
    (":" * 8_000, PROXY),
    ("," * 8_000, PROXY),
]


@pytest.fixture(autouse=True)
def _behind_a_proxy(settings: Settings) -> None:
    settings.TRUSTED_PROXY_COUNT = 1


@pytest.mark.rule("limit.address")
@pytest.mark.parametrize(("header", "caller"), SEEN)
def test_the_callers_address_is_the_one_that_the_proxy_saw(header: str, caller: str) -> None:
    request = RequestFactory(REMOTE_ADDR=PROXY).get("/", headers={"x-forwarded-for": header})
    assert address.caller_address(request) == caller


def test_the_callers_address_behind_two_proxies_is_the_one_that_the_outer_proxy_saw(
    settings: Settings,
) -> None:
    settings.TRUSTED_PROXY_COUNT = 2
    headers = {"x-forwarded-for": "9.9.9.9, [2001:db8::7]:80, 10.0.0.3:80"}
    assert (
        address.caller_address(RequestFactory(REMOTE_ADDR=PROXY).get("/", headers=headers)) == "2001:db8::7"
    )


def test_the_callers_address_without_proxies_is_the_peer(settings: Settings) -> None:
    settings.TRUSTED_PROXY_COUNT = 0
    headers = {"x-forwarded-for": "203.0.113.7"}
    assert address.caller_address(RequestFactory(REMOTE_ADDR=PROXY).get("/", headers=headers)) == PROXY


@pytest.mark.rule("limit.address")
@pytest.mark.parametrize(
    ("given", "network", "site"),
    [
        ("192.0.2.1", "192.0.2.1", ""),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("::ffff:192.0.2.1", "192.0.2.1", ""),
        ("fe80::1%eth0", "fe80::/64", "fe80::/48"),
        ("unknown", "unknown", ""),
        ("", "", ""),
    ],
)
def test_limits_count_an_ipv4_address_or_an_ipv6_64_network_and_its_48_network(
    given: str, network: str, site: str
) -> None:
    assert address.networks_of(given) == (network, site)


def test_digests_hide_the_address_and_are_empty_for_the_site_of_ipv4() -> None:
    made = address.caller_digests("x", "192.0.2.1")
    assert len(address.first_digests(made)["address_digest"]) == 64 and made["site_digest"] == [""]
    assert made != address.caller_digests("y", "192.0.2.1")


@pytest.mark.django_db
class TestEverywhere:
    """Every part of the service can store and count every address. Two spellings of an address count as one."""

    @pytest.mark.parametrize(("header", "caller"), SEEN)
    def test_at_the_login(self, acme: Merchant, header: str, caller: str) -> None:
        people.join(acme)
        client = Client(REMOTE_ADDR=PROXY, headers={"x-forwarded-for": header})
        for password in ("wrong", people.PASSWORD):
            answer = client.post("/accounts/login/", {"login": people.EMAIL, "password": password})
            assert answer.status_code in (200, 302)
        assert client.get("/portal/security").status_code == 200
        written = AuditEntry.objects.exclude(address=None).values_list("address", flat=True)
        assert set(written) <= {caller}

    @pytest.mark.parametrize(("header", "caller"), SEEN)
    def test_at_the_page(self, unpaid: Checkout, header: str, caller: str) -> None:
        lea = Payer(unpaid)
        lea.client = Client(REMOTE_ADDR=PROXY, headers={"x-forwarded-for": header})
        assert lea.post("/phone", phone=PHONE).status_code == 303
        assert lea.code()

    @pytest.mark.parametrize(("header", "caller"), SEEN)
    def test_at_the_token_endpoint(self, api: Api, header: str, caller: str) -> None:
        body = {"grant_type": "client_credentials", "client_id": api.key.client.client_id}
        client = Client(REMOTE_ADDR=PROXY, headers={"x-forwarded-for": header})
        for secret, status in (("wrong", 401), (api.key.client_secret, 200)):
            answer: Any = client.post(
                "/oauth/token", body | {"client_secret": secret}, content_type="application/json"
            )
            assert answer.status_code == status
