"""A request without a login costs little more CPU time than a plain refusal.

A plain refusal is the response to a path that does not exist. If the input is twice as long, the CPU time about
doubles.
"""

import functools
import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.db import transaction
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from config import body_limits
from config.lib import clock, crypto
from config.urls import MEANT_FOR_API
from hosted_page.logo import storage
from hosted_page.opt_in import link
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import outbox, stopped_numbers
from hosted_page.steps import card_page
from payments.models import Logo, Merchant, Operation
from payments.providers.sandbox import bank
from portal.models import Invitation, Role
from tests import factories
from tests.config import addresses
from tests.config.bounds import found, price, shapes
from tests.config.bounds.readers import ADDRESS, HEADER, LINE, PARSED, READERS, WRITTEN_BY_US, Reader
from tests.hosted_page.logo import files
from tests.portal import people

# The largest allowed CPU time of a request, as a multiple of the CPU time of a plain refusal.
MAXIMUM = 50
# Under these prefixes, a request without a login is redirected to the login page or gets 401. All other paths are open.
NEED_A_LOGIN = (
    *("/api/merchant/v1/", "/api/sandbox/v1/", "/portal", "/admin/", "/accounts/2fa/", "/accounts/logout/"),
    *("/accounts/password/change/", "/accounts/reauthenticate/", "/accounts/sessions/"),
    "/accounts/login/passkey/",
)
# Open routes that return 404 in this test. The returns from a card page and the page of the daily check need a
# signature. No mail was sent. The other routes are for API addresses that do not exist.
NOTHING_THERE = [
    *("pay/paid", "pay/share/<str:token>/paid", "mail/<str:name>", "pay/check"),
    *(*MEANT_FOR_API, f"(?:{'|'.join(MEANT_FOR_API)})/"),
]
# Paths that are served without the URL resolver, or that the resolver does not find.
ELSEWHERE = ("/livez", "/readyz", "/static/css/tokens.css", "/nothing")
READ = (
    *("Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Bank-Signature", "HX-Current-URL"),
    *("Idempotency-Key", "If-Modified-Since", "If-None-Match", "Origin", "Range", "Referer", "User-Agent"),
    *("X-Forwarded-For", "X-Forwarded-Proto", "X-Request-Id", "Cookie", "Content-Type"),
)
# This expression reads a text only after orjson has accepted it as JSON. test_strict_json tests both together.
BEHIND_ANOTHER = "config/lib/strict_json.py _TOKEN.finditer"


@pytest.fixture(scope="module", autouse=True)
def _as_in_a_web_process() -> Iterator[None]:
    with price.as_in_a_web_process():
        yield


class Stranger:
    """A client without a login. Its changes are rolled back, so that each request finds the same database."""

    def __init__(self) -> None:
        # Do not measure the first request, because it does extra work.
        addresses.asking("POST", "/api/nothing")()
        self._found = transaction.savepoint()
        self._plain = self._refusal()

    def times(self, *asked: str, **headers: str) -> float:
        """Return the CPU time of a request, divided by the CPU time of a plain refusal.

        If the result is over MAXIMUM, both are measured again.
        """
        times = self._cost(*asked, **headers) / self._plain
        if times > MAXIMUM:
            times = price.lowest(lambda: self._cost(*asked, **headers) / self._refusal(), enough=MAXIMUM)
        return times

    def _refusal(self) -> float:
        return min(self._cost("POST", "/api/nothing") for _ in range(20))

    def _cost(self, *asked: str, **headers: str) -> float:
        seconds = price.cpu(addresses.asking(*asked, **headers))
        transaction.savepoint_rollback(self._found)
        return seconds


@functools.cache
def closed() -> dict[str, str]:
    """Return the path of each route that needs a login."""
    found_at = {route: addresses.path(route) for route in addresses.routes()}
    return {route: path for route, path in found_at.items() if addresses.needs_a_login(path)}


@pytest.fixture
def known_paths(
    acme: Merchant, at: Callable[[str], Checkout], pay: Callable[..., Checkout]
) -> dict[str, str]:
    """Return the paths of existing objects, keyed by route prefix.

    The objects are shares, the bank's pages, an invitation, a logo, and links in messages.
    """
    Merchant.objects.update(opt_in_enabled=True)
    shared, asked = at("shared"), factories.checkout(acme)
    pay(asked, card="4000002500003155")
    Invitation.objects.create(
        merchant=acme,
        email="amy@acme.example",
        role=Role.VIEWER,
        token_digest=crypto.digest("invited"),
        invited_by=people.join(acme),
        expires_at=clock.now() + timedelta(days=1),
    )
    storage.save_logo(acme.pk, storage.read_upload(files.logo()))
    drawn = f"brand/{acme.pk}-{Logo.objects.get().version}"
    around = card_page.page_context(PaymentTarget(asked))
    session = bank.open_session(subject=asked.pk, return_url="/pay", page=around)
    return {
        "api/docs/<str:name>": "api/docs/receiver.py",
        "api/docs/<slug:name>.md": "api/docs/errors.md",
        "pay/share/<str:token>": f"pay/share/{shared.payment_requests.get(status='open').token}",
        "pay/g/<str:token>/<int:position>": f"pay/g/{shared.group_link.token}/3",
        "pay/g/<str:token>": f"pay/g/{shared.group_link.token}",
        "pay/offers/<str:token>": urlsplit(link.url(shared, "email_link")).path[1:],
        "pay/stop/<str:token>": urlsplit(
            stopped_numbers.stop_link(outbox.number_digest("+447700900456"))
        ).path[1:],
        "join/<str:token>": "join/invited",
        "brand/<slug:colour>": "brand/A61C59",
        "brand/<uuid:merchant_uuid>-<int:version>.png": f"{drawn}.png",
        "brand/<uuid:merchant_uuid>-<int:version>-card.png": f"{drawn}-card.png",
        "brand/<uuid:merchant_uuid>": f"brand/{acme.pk}",
        "bank/card/<uuid:session_uuid>": f"bank/card/{session}",
        "bank/challenge/<uuid:key>": f"bank/challenge/{Operation.objects.get(state='needs_action').pk}",
    }


@pytest.fixture
def open_ones(known_paths: dict[str, str], acme: Merchant) -> dict[str, str]:
    """Return a path for each route that does not need a login, if possible the path of an existing object."""
    order = f"?id={factories.checkout(acme).pk}"
    found_at = {
        route: addresses.path(route, known_paths) for route in addresses.routes() if route not in closed()
    }
    return {route: f"{path}{order if path.startswith('/pay') else ''}" for route, path in found_at.items()}


@pytest.mark.django_db
class TestAddresses:
    def test_that_require_a_login_have_the_known_prefixes(self) -> None:
        needing = closed().values()
        assert [path for path in needing if not path.startswith(NEED_A_LOGIN)] == []
        assert [begun for begun in NEED_A_LOGIN if not any(path.startswith(begun) for path in needing)] == []

    def test_that_require_no_login_lead_to_a_page(self, open_ones: dict[str, str]) -> None:
        answers = {route: addresses.answer(path).status_code for route, path in open_ones.items()}
        told = {route: status for route, status in answers.items() if status == 404 or route in NOTHING_THERE}
        assert told == dict.fromkeys(NOTHING_THERE, 404)
        assert max(answers.values()) < 500

    @pytest.mark.long
    def test_cost_little_more_than_a_plain_refusal(self, open_ones: dict[str, str]) -> None:
        """One path under each prefix that needs a login is included, because the service reads the bodies there too."""
        first = [next(path for path in closed().values() if path.startswith(begun)) for begun in NEED_A_LOGIN]
        stranger, dear = Stranger(), {}
        for path in (*open_ones.values(), *first, *ELSEWHERE):
            for content_type, made in shapes.BODIES:
                # A larger body would be refused before it is read.
                body = made(body_limits._size_limit_of(path.partition("?")[0]))
                headers = {"Content-Type": content_type}
                dear[path, content_type[:60], body[:60]] = stranger.times("POST", path, body, **headers)
        assert {asked: times for asked, times in dear.items() if times > MAXIMUM} == {}

    def test_cost_little_more_with_any_headers(self, open_ones: dict[str, str]) -> None:
        stranger, dear = Stranger(), {}
        for path in (open_ones["pay"], "/accounts/login/?a=", "/static/css/tokens.css?a="):
            for filled in shapes.QUOTED[::2]:
                headers = dict.fromkeys(READ, filled.of(HEADER))
                dear[path, filled] = stranger.times("GET", f"{path}&{filled.of(LINE)}", **headers)
        assert {asked: times for asked, times in dear.items() if times > MAXIMUM} == {}


Named = Iterable[tuple[str, Reader]]


def _steep(named: Named) -> dict[tuple[str, shapes.Filled], float]:
    """Return, for each reader and text, the growth of the CPU time if it is over MAX_GROWTH."""
    fed = ((name, filled, reader) for name, reader in named for filled in reader.texts)
    grown = {(name, filled): price.growth(reader.act, filled, reader.size) for name, filled, reader in fed}
    return {fed: times for fed, times in grown.items() if times > price.MAX_GROWTH}


def _fed(acts: Iterable[tuple[str, found.Act]], size: int, texts: tuple[shapes.Filled, ...]) -> Named:
    return ((name, Reader(act, size, texts)) for name, act in acts)


class TestDoublingTheInput:
    """Reading a text of double length takes at most 2.5 times the CPU time."""

    @pytest.fixture(autouse=True)
    def _told_to_nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Disable logging, because the log's filters would add to the CPU time of a refusal."""
        monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)

    def test_is_tested_for_every_parser(self) -> None:
        assert found.parsing() == PARSED.keys() | WRITTEN_BY_US
        assert PARSED.keys().isdisjoint(WRITTEN_BY_US) and set(PARSED.values()) <= READERS.keys()
        assert set(found.unnamed()) <= WRITTEN_BY_US

    @pytest.mark.long
    def test_grows_the_time_of_every_parser_about_linearly(self, settings: Settings) -> None:
        settings.TRUSTED_PROXY_COUNT = 1
        assert _steep(READERS.items()) == {}

    def test_grows_the_time_of_every_regular_expression_about_linearly(self) -> None:
        expressions = dict(found.expressions())
        assert BEHIND_ANOTHER in expressions
        del expressions[BEHIND_ANOTHER]
        texts = shapes.TEXTS + shapes.ADDRESSES[::2] + shapes.QUOTED[::2]
        assert _steep(_fed(expressions.items(), LINE, texts)) == {}

    def test_grows_the_time_of_every_url_pattern_about_linearly(self) -> None:
        assert _steep(_fed(found.routes(), LINE, shapes.TEXTS)) == {}

    def test_grows_the_time_of_every_form_about_linearly(self) -> None:
        assert _steep(_fed(found.form_classes(), ADDRESS, shapes.TEXTS[::2] + shapes.ADDRESSES[::2])) == {}

    def test_grows_the_time_of_every_api_field_about_linearly(self) -> None:
        assert found.lists_without_an_end() == []
        assert _steep(_fed(found.fields(), ADDRESS, shapes.TEXTS + shapes.ADDRESSES[::2])) == {}
