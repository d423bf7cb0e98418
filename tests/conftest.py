import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.test import Client, TransactionTestCase
from pytest_django.fixtures import Settings
from whitenoise.middleware import WhiteNoiseMiddleware
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from checkout import authorizations, cancellations, captures, expiry, mate_shares, refunds, tasks
from checkout.models import Checkout, PaymentRequest
from checkout.proof import ledger_proof
from config.lib import clock
from config.lib.web import http
from payments import operations, operator_stops, restore_guard
from payments.models import Merchant, Operation
from payments.provider import CardUse
from payments.providers.sandbox import bank, notifications
from portal import keys
from tests import emptying, event_bodies, factories, mates, sessions
from tests.factories import CAUSE, CustomerFactory, MerchantFactory, make_late
from tests.outages import KINDS, InDoubt, break_down
from tests.outside import RETURNS, settle
from tests.portal import people

# In a run with several processes, all tests of a group run in the same process. SHARING_A_SERVICE and
# WITH_A_WORLD are two groups, because their tests start the whole service and measure time. ON_A_MACHINE is a
# group, because its tests share one installation. The gallery (PICTURED) and every second test of
# `thirty_seeds` (BESIDE) are two more groups, because they take longer than all other tests.
SHARING_A_SERVICE = ("tests/browser/", "tests/journeys/")
WITH_A_WORLD = ("tests/chaos/", "tests/races/")
ON_A_MACHINE = "tests/config/deploy/debian/"
PICTURED = "tests/browser/test_gallery.py"
# These tests first search for all addresses that require a login. In one process, they search only once.
ASKING_EVERYWHERE = "tests/config/bounds/test_price.py::TestAddresses"
BESIDE = re.compile(r"thirty_seeds\[\d*[02468]\]")


class Spread(LoadScopeScheduling):
    """A scheduler for a run with several processes: each free process takes the next test or group of tests."""

    def _split_scope(self, nodeid: str) -> str:
        if BESIDE.search(nodeid):
            return "seeds beside"
        if nodeid.startswith(PICTURED):
            return "pictured"
        if nodeid.startswith(WITH_A_WORLD):
            return "with a world"
        if nodeid.startswith(ON_A_MACHINE):
            return "on a machine"
        if nodeid.startswith(ASKING_EVERYWHERE):
            return "asking everywhere"
        return "sharing a service" if nodeid.startswith(SHARING_A_SERVICE) else nodeid


def pytest_configure(config: pytest.Config) -> None:
    """Make every second process import the test modules in reverse order.

    Half of the processes start with the first module, and the other half with the last. Each half later finds
    many modules that the other half has already compiled, which saves time.
    """
    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    if int(number) % 2 and config.args == ["tests"]:
        config.args = sorted({str(path.parent) for path in Path("tests").rglob("test_*.py")}, reverse=True)


@pytest.hookimpl(tryfirst=True, specname="pytest_collection_modifyitems")
def pytest_in_one_order(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the gallery and the tests named `thirty_seeds` first, because they take the longest."""
    items.sort(key=lambda item: not item.nodeid.startswith(PICTURED) and "thirty_seeds" not in item.name)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print a failure immediately, so that it is shown even if the run is stopped early."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        crash = getattr(report.longrepr, "reprcrash", None)
        print(f"\n{report.nodeid}: {crash.message if crash else report.longrepr}", file=sys.__stderr__)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Spread:
    return Spread(config, log)


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """Use the database of this process's PostgreSQL, which has been migrated already."""
    connection.settings_dict["TEST"]["NAME"] = connection.settings_dict["NAME"]


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Do not delete the database, because its PostgreSQL ends with the tests."""
    return True


@pytest.fixture(scope="session", autouse=True)
def _fast_database_reset() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", emptying.empty)
        yield


@pytest.fixture(scope="session", autouse=True)
def _session_secrets_and_checked_events() -> None:
    """Let Django's test client send the secrets of sessions, and check each emitted event against its JSON Schema."""
    sessions.install()
    event_bodies.install()


@pytest.fixture(scope="session", autouse=True)
def _single_search_for_static_files() -> Iterator[None]:
    """Search for static files once, because otherwise each test client would search for them."""
    look = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[str, Any] = {}

    def add(middleware: WhiteNoiseMiddleware) -> None:
        if not found:
            look(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", add)
        yield


@pytest.fixture(autouse=True)
def _fast_password_hash(settings: Settings) -> None:
    """Use a fast password hash, because the real one is deliberately slow: it takes 0.25 s of CPU time."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher", *settings.PASSWORD_HASHERS]


@pytest.fixture(autouse=True)
def _no_rate_limits(settings: Settings) -> None:
    """Remove the rate limits, because tests send more requests per second than merchants do."""
    settings.LIMITS = dict.fromkeys(settings.LIMITS, "999999/second")


@pytest.fixture(autouse=True)
def _restore_guard_is_open() -> None:
    """Store in the restore guard's cache that the service is open.

    Otherwise, tests that count queries would also count the guard's query. The tests of the restore guard
    clear this cache.
    """
    restore_guard._is_open._value, restore_guard._is_open._read_at = True, float("inf")


@pytest.fixture(autouse=True)
def _cleared_cache_of_stops() -> None:
    """Clear the cache of operators' payment stops, so that a stop in an earlier test has no effect."""
    operator_stops.reread_stops()


@pytest.fixture
def acme(db: None) -> Merchant:
    return MerchantFactory.create(name="Acme Tickets")


@pytest.fixture
def rival(db: None) -> Merchant:
    return MerchantFactory.create(name="Rival")


@pytest.fixture
def operator(client: Client) -> Client:
    """Return the client of a superuser who has just confirmed their identity."""
    people.operate(client)
    return client


class Api:
    """A merchant's backend: it sends and receives JSON, and has an access token."""

    def __init__(self, merchant: Merchant, key: keys.NewClient | None = None) -> None:
        self.merchant, self.client = merchant, Client(enforce_csrf_checks=True)
        self.key = key or keys.create_client(merchant, "Key")
        self.token = self.get_token()

    def get_token(self, **fields: str) -> str:
        body = {
            "grant_type": "client_credentials",
            "client_id": self.key.client.client_id,
            "client_secret": self.key.client_secret,
        }
        answer = self.client.post("/oauth/token", json.dumps(body | fields), content_type="application/json")
        return str(answer.json()["access_token"])

    def headers(self, extra: dict[str, str]) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"} | extra

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(f"/api/merchant/v1/{path}", headers=self.headers(headers))

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(
            f"/api/merchant/v1/{path}", raw, content_type="application/json", headers=self.headers(names)
        )

    def delete(self, path: str) -> Any:
        return self.client.delete(f"/api/merchant/v1/{path}", headers=self.headers({}))


@pytest.fixture
def api(acme: Merchant) -> Api:
    return Api(acme)


@pytest.fixture
def rival_api(rival: Merchant) -> Api:
    return Api(rival)


@pytest.fixture
def proven(db: None) -> Iterator[None]:
    """Check after the test that the ledger agrees with the statuses."""
    yield
    assert ledger_proof.find_breaches() == []


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Deliver the bank's notifications in this process. Return the list of the responses' status codes."""
    statuses: list[int] = []

    def post(url: str, body: bytes, headers: dict[str, str], *, seconds: float) -> http.Response:
        signed = {notifications.HEADER: headers[notifications.HEADER]}
        path, kind = urlsplit(url).path, headers["Content-Type"]
        answer = Client().post(path, body, content_type=kind, headers=signed)
        statuses.append(answer.status_code)
        return http.Response(answer.status_code, answer.content, {})

    monkeypatch.setattr(http, "post", post)
    return statuses


@pytest.fixture
def unpaid(acme: Merchant) -> Checkout:
    return factories.checkout(acme)


@pytest.fixture
def by_item(acme: Merchant) -> Checkout:
    """Return an order split by item: Finn has a ticket, and two tickets and two T-shirts are free."""
    order, lead = factories.mixed_checkout(acme), CustomerFactory.create(name="Lea")
    mate_shares.make_lead(order.pk, lead)
    mate_shares.split_by_item(order.pk, [("Finn", [1, 0, 0])], [2, 2, 0], lead=lead.pk, everyone_first=True)
    return Checkout.objects.get(pk=order.pk)


@pytest.fixture
def pay() -> Callable[..., Checkout]:
    """Return a function that pays a checkout with the lead's test card and returns the updated checkout."""

    def paid(checkout: Checkout, card: str = "4242424242424242") -> Checkout:
        token = bank.tokenise(subject=checkout.pk, number=card)
        lead = Checkout.objects.select_related("lead").get(pk=checkout.pk).lead or CustomerFactory.create()
        authorizations.authorize(checkout.pk, card=CardUse(token), lead=lead, cause=CAUSE)
        return Checkout.objects.select_related("merchant", "payment", "lead").get(pk=checkout.pk)

    return paid


@pytest.fixture
def held(unpaid: Checkout, pay: Callable[..., Checkout]) -> Checkout:
    return pay(unpaid)


@pytest.fixture
def captured(held: Checkout) -> Checkout:
    return captures.capture(held.merchant, held.pk, cause=CAUSE)


@pytest.fixture
def at(unpaid: Checkout, pay: Callable[..., Checkout]) -> Callable[[str], Checkout]:
    """Return a function that brings Acme's unpaid checkout to a given status, step by step.

    For `lapsed`, the hold ends without a capture. For `shared`, the checkout is captured and the first of two
    mates has paid, but the lead has not been reimbursed yet.
    """

    def bring_to(status: str) -> Checkout:
        asked = mates.split(unpaid, 2000, 3000) if status == "shared" else []
        if status not in ("created", "expired"):
            pay(unpaid)
        if status in ("captured", "shared", "refunding", "refunded"):
            captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        if status == "shared":
            mates.pay(asked[0])
            mates.pump(unpaid.pk)
        if status in ("refunding", "refunded"):
            refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        if status == "refunded":
            tasks.finish_operations()
            Operation.objects.filter(state="pending").update(next_attempt_at="2020-01-01T00:00Z")
            tasks.finish_operations()
        if status == "voided":
            cancellations.cancel(unpaid.merchant, unpaid.pk, cause=CAUSE)
        unpaid.refresh_from_db()
        if status in ("expired", "lapsed"):
            make_late(unpaid)
            expiry.expire_one_if_due(unpaid.pk)
        unpaid.refresh_from_db()
        return unpaid

    return bring_to


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the timeouts, so that tests with a hanging bank are fast."""
    monkeypatch.setattr(operations, "CALL_SECONDS", dict.fromkeys(KINDS, 0.02))
    monkeypatch.setattr(operations, "LOOK_UP_SECONDS", 0.02)


@pytest.fixture
def in_doubt(unpaid: Checkout, pay: Callable[..., Checkout]) -> InDoubt:
    """Return a function that starts an operation of a given kind. The operation's first `times` calls fail."""

    def start_operation(kind: str, mode: str = "down", times: int = 1) -> Operation:
        if kind == "refund":
            captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        elif kind != "authorize":
            pay(unpaid)
        break_down(kind, mode, times)
        if kind == "authorize":
            pay(unpaid)
        elif kind == "capture":
            break_down("look_up", "down")
            with pytest.raises(captures.OutcomeUnknown):
                captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        elif kind == "void":
            cancellations.cancel(unpaid.merchant, unpaid.pk, cause=CAUSE)
            tasks.finish_operations()
        else:
            refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
            tasks.finish_operations()
        return Operation.objects.select_related("payment").get(kind=kind)

    return start_operation


@pytest.fixture
def unclear(held: Checkout) -> Operation:
    """Return a capture whose outcome is unknown."""
    break_down("capture", "down")
    with pytest.raises(captures.OutcomeUnknown):
        captures.capture(held.merchant, held.pk, cause=CAUSE)
    return Operation.objects.get(kind="capture")


@pytest.fixture
def refunded(unpaid: Checkout, pay: Callable[..., Checkout]) -> Checkout:
    """Return a refunded order. When the test advances the bank's time, the bank returns the refund."""
    captures.capture(unpaid.merchant, pay(unpaid, RETURNS).pk, cause=CAUSE)
    refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
    settle(unpaid)
    assert unpaid.status == "refunded"
    return unpaid


@pytest.fixture
def accepted(captured: Checkout) -> Operation:
    """Return a refund that the bank has accepted but not settled. The pump will look it up in an hour."""
    refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
    tasks.finish_operations()
    Operation.objects.filter(kind="refund").update(next_attempt_at=clock.now() + timedelta(hours=1))
    operation = Operation.objects.select_related("payment").get(kind="refund")
    assert operation.state == "pending"
    return operation


@pytest.fixture
def shares(unpaid: Checkout, pay: Callable[..., Checkout]) -> list[PaymentRequest]:
    """Return the shares of a captured order of £90.00. Finn is asked for £20.00 and Amy for £30.00."""
    asked = mates.split(unpaid, 2000, 3000)
    pay(unpaid)
    captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    return [PaymentRequest.objects.get(pk=share.pk) for share in asked]


@pytest.fixture
def order(unpaid: Checkout, shares: list[PaymentRequest]) -> Checkout:
    return Checkout.objects.select_related("merchant", "payment", "lead").get(pk=unpaid.pk)
