"""Every merchant URL that the API accepts must work on every page. The API refuses all other URLs."""

from typing import Any

import pytest

from checkout.models import Checkout
from config.lib.web import origins
from payments.models import Merchant
from tests import factories
from tests.conftest import Api
from tests.hosted_page.browsers import Payer
from tests.refusals import refused
from webhooks import targets, transport

LONG = "b" * 60
HOSTS = (
    *(f"a.{LONG}", f"a.{LONG}:8443", f"a.{LONG}bbb:65535", f"a.{LONG}bbbb", f"{'a.' * 120}example"),
    *(f"{'a.' * 126}example", f"{LONG}.{LONG}.{LONG}.{LONG}.example:8443", "a..example", ".example", "a.example."),
    *("a.example.:8443", "a.example..", "a.example:", "a.example:0", "a.example:65536", "a.example:x"),
    *("a.example:８４４３", "a.example:-1", "a.example:443;b", "A.EXAMPLE:8443", "bücher.example:8443"),
    *("straße.example", "ａ.example", "a。example", "💩.example", "\u200b.example", "a\u200d.example", "xn--a.example"),
    *(f"{'ä' * 60}.example", f"{'ä' * 40}.example:8443", "%61.example", "a%.example", "a%00.example", "a;b.example"),
    *("a,b.example", "a'b.example", 'a"b.example', "*.example", "-a.example", "a_b.example", "[::1]", "[::1]:8000"),
    *("[2001:db8::1]", "[2001:db8::1%25eth0]", "[::1", "::1", "[v1.x]", "[]", "1.2.3.4", "0x7f.1", "127.0.0.1:9"),
    *("localhost:9", "localhost.:9", "", "@a.example", "a.example@b.example", "a.example\\b"),
)  # fmt: skip
PATHS = (
    "",
    "/",
    "/é 漢",
    "/%",
    "/%zz",
    "/?a=b#c",
    "?x",
    "/;,'\"",
    "/" + "é" * 1900,
    "/\u202e",
    "//b",
    "/../..",
)
URLS = [
    *(f"https://{host}/" for host in HOSTS),
    *(f"https://shop.example{path}".replace(" ", "%20") for path in PATHS),
    *(f"http://{host}/" for host in ("127.0.0.1:9", "[::1]:9", "localhost:9", "[::1]:", "127.0.0.1:99999")),
    *("https:///", "https:", "//shop.example", "javascript:alert(1)", "HTTPS://SHOP.EXAMPLE:8443/X"),
]


def works(api: Api, checkout_uuid: str) -> None:
    """Open every page that contains the merchant's URLs, up to the bank's page. Then cancel the order."""
    lea = Payer(Checkout.objects.get(pk=checkout_uuid))
    assert lea.get().status_code == 200
    lea.sign_in()
    lea.post("/split", split="all")
    bank = lea.client.get(lea.get("/card")["Location"])
    assert bank.status_code == 200 and bank["Content-Security-Policy"].isascii()
    back = lea.post("/cancel")
    assert back.status_code == 303 and back["Location"].isascii()
    assert api.get(f"checkouts/{checkout_uuid}").status_code == 200


@pytest.mark.parametrize("url", URLS, ids=lambda url: ascii(url)[:60])
def test_an_unusual_return_url_works_or_is_refused(api: Api, url: str) -> None:
    answer: Any = api.post("checkouts", factories.order(return_url=url, cancel_url=url))
    if answer.status_code == 201:
        works(api, answer.json()["data"]["checkout_uuid"])
    else:
        refused(answer, 422, "validation_failed", "return_url", "cancel_url")


def test_a_return_url_with_the_longest_label_and_a_port_works(api: Api, acme: Merchant) -> None:
    checkout = factories.checkout(acme, return_url=f"https://a.{LONG}:8443/")
    page = Payer(checkout).get()
    assert page.status_code == 200
    assert f"https://a.{LONG}:8443" in page["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Bücher.example:8443/x", "https://xn--bcher-kva.example:8443"),
        ("https://straße.example/", "https://xn--strae-oqa.example"),
        ("http://[::1]:8000/x", "http://[::1]:8000"),
        ("https://a.example:/", "https://a.example"),
        (f"https://a.{LONG}bbbb/", ""),
        ("https://a..b/", ""),
        ("/pay", ""),
        ("https://a.example:x/", ""),
    ],
)
def test_a_return_url_has_an_origin_as_browsers_write_it(url: str, origin: str) -> None:
    assert origins.origin_of(url) == origin


@pytest.mark.parametrize("url", URLS, ids=lambda url: ascii(url)[:60])
def test_an_unusual_webhook_url_can_be_called_or_is_refused(url: str) -> None:
    for allow_loopback in (True, False):
        try:
            normal = targets.check_url(url, allow_loopback=allow_loopback)
        except targets.TargetRefused:
            continue
        assert normal.isascii() and targets.check_url(normal, allow_loopback=allow_loopback) == normal
        called = transport._parse_url(normal)
        assert called.raw_path_qs.startswith("/") and called.raw_host and called.port
