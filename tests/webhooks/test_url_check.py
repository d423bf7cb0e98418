"""If the name servers for one merchant's URL are slow, other merchants are not delayed."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.test import Client
from pytest_django.fixtures import Settings

from config.lib.bulkhead import Busy
from config.lib.web import http
from payments.models import Merchant
from portal.models import AuditEntry, Role
from tests.conftest import Api
from tests.factories import MerchantFactory
from tests.portal import stage
from tests.refusals import nothing_moves, refused
from tests.webhooks.receivers.receiving import Names
from webhooks import targets, url_check
from webhooks.models import Subscription

URL = "https://hooks.slow.example/"
ASKED = {"url": URL, "event_types": ["*"]}


class SilentNames(Names):
    """Name servers that answer only when the test allows it."""

    def __init__(self) -> None:
        super().__init__(["1.1.1.1"])
        self.heard, self.may_answer = threading.Semaphore(0), threading.Event()
        # Store the database connection of the calling thread, because Django would return another one inside
        # a coroutine.
        self.caller = connections[DEFAULT_DB_ALIAS]
        self.connections: list[object] = []

    async def resolve(self, *args: object, **options: object) -> list[object]:  # type: ignore[override]
        self.connections.append(self.caller.connection)
        self.heard.release()
        while not self.may_answer.is_set():
            await asyncio.sleep(0.005)
        return await super().resolve("hooks.slow.example")  # type: ignore[return-value]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> SilentNames:
    silent = SilentNames()
    monkeypatch.setattr(http, "resolver", lambda: silent)
    monkeypatch.setattr(targets, "RESOLVE_SECONDS", 60.0)
    return silent


@pytest.fixture
def check(names: SilentNames, transactional_db: None) -> Iterator[Callable[[Merchant], "Future[str]"]]:
    """Yield a function that starts a URL check for a merchant in a separate thread, and returns its future.

    The function returns once the check has queried the name servers.
    """
    with ThreadPoolExecutor(4) as pool:

        def checked(merchant: Merchant) -> str:
            try:
                names.caller = connections[DEFAULT_DB_ALIAS]
                return url_check.check_merchant_url(Merchant.objects.get(pk=merchant.pk), URL)
            finally:
                connection.close()

        def begun(merchant: Merchant) -> "Future[str]":
            future = pool.submit(checked, merchant)
            assert names.heard.acquire(timeout=10)
            return future

        try:
            yield begun
        finally:
            names.may_answer.set()


class TestWhileNamesAreSlow:
    @pytest.mark.rule("target.checks")
    def test_a_merchant_has_one_check_at_a_time_in_a_process(
        self, check: Callable[[Merchant], "Future[str]"], names: SilentNames, acme: Merchant, api: Api
    ) -> None:
        waiting = check(acme)
        with nothing_moves():
            answer = api.post("webhooks/subscription", ASKED)
        refused(answer, 503, "service_unavailable")
        assert answer["Retry-After"] == "1" and names.asked == 0
        names.may_answer.set()
        assert waiting.result(10) == URL
        assert api.post("webhooks/subscription", ASKED).status_code == 201

    @pytest.mark.rule("target.checks")
    def test_at_most_two_checks_run_in_a_process(
        self, check: Callable[[Merchant], "Future[str]"], acme: Merchant
    ) -> None:
        check(acme)
        check(MerchantFactory.create())
        with pytest.raises(Busy):
            url_check.check_merchant_url(MerchantFactory.create(), URL)

    def test_all_other_requests_continue(
        self,
        check: Callable[[Merchant], "Future[str]"],
        acme: Merchant,
        rival_api: Api,
        client: Client,
    ) -> None:
        check(acme)
        assert client.get("/livez").status_code == client.get("/readyz").status_code == 200
        assert rival_api.get("checkouts").status_code == 200
        here = {"url": "http://127.0.0.1:9/hook", "event_types": ["*"]}
        assert rival_api.post("webhooks/subscription", here).status_code == 201

    def test_a_check_holds_no_database_connection(
        self, check: Callable[[Merchant], "Future[str]"], names: SilentNames, acme: Merchant
    ) -> None:
        check(acme)
        assert names.connections == [None]

    def test_the_portal_says_so_and_keeps_the_typed_values(
        self, check: Callable[[Merchant], "Future[str]"], acme: Merchant
    ) -> None:
        browser = stage.browser(stage.person(acme, Role.OWNER))
        check(acme)
        page = browser.post("/portal/webhooks/endpoint", ASKED | {"event_types": ["checkout.voided"]})
        assert page.status_code == 422
        assert "Save again in a moment" in page.content.decode() and URL in page.content.decode()
        assert not Subscription.objects.exists() and not AuditEntry.objects.exists()

    def test_the_portal_waits_outside_a_transaction(
        self, transactional_db: None, names: SilentNames, acme: Merchant
    ) -> None:
        browser = stage.browser(stage.person(acme, Role.OWNER))
        names.may_answer.set()
        browser.post("/portal/webhooks/endpoint", ASKED | {"event_types": ["checkout.voided"]})
        assert Subscription.objects.get().url == URL and names.connections == [None]


@pytest.mark.django_db
class TestTheQuota:
    @pytest.fixture(autouse=True)
    def _few(self, settings: Settings, names: SilentNames) -> None:
        settings.LIMITS = settings.LIMITS | {"url_checks": "2/minute"}
        names.may_answer.set()

    @pytest.mark.rule("target.checks")
    def test_is_separate_for_each_merchant_and_says_when_to_retry(
        self, api: Api, rival_api: Api, names: SilentNames
    ) -> None:
        statuses = [api.post("webhooks/subscription", ASKED).status_code for _ in range(2)]
        assert statuses == [201, 200]
        with nothing_moves():
            answer = api.post("webhooks/subscription", ASKED)
        refused(answer, 429, "rate_limited")
        assert answer["Retry-After"] == "60" and names.asked == 2
        assert rival_api.post("webhooks/subscription", ASKED).status_code == 201

    def test_does_not_count_addresses_that_are_refused_without_a_lookup(
        self, api: Api, names: SilentNames
    ) -> None:
        for url in ("https://10.0.0.1/", "ftp://shop.example/", "http://127.0.0.1:9/hook"):
            api.post("webhooks/subscription", ASKED | {"url": url})
        assert names.asked == 0 and api.post("webhooks/subscription", ASKED).status_code == 200

    def test_applies_in_the_portal_too(self, acme: Merchant) -> None:
        browser = stage.browser(stage.person(acme, Role.OWNER))
        asked = ASKED | {"event_types": ["checkout.voided"]}
        pages = [browser.post("/portal/webhooks/endpoint", asked) for _ in range(3)]
        assert [page.status_code for page in pages] == [302, 302, 422]
        assert "Try again in a minute" in pages[-1].content.decode()
