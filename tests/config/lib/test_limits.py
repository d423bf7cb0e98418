import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from config.lib import limits
from tests import factories
from tests.conftest import Api
from tests.factories import make_late
from tests.outages import InDoubt
from tests.portal.test_token_endpoint import ask, credentials

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _two_a_minute(settings: Settings) -> None:
    settings.LIMITS = dict.fromkeys(settings.LIMITS, "2/minute")


class TestBuckets:
    @pytest.mark.rule("limit.buckets")
    def test_of_reads_and_creates_are_apart(self, api: Api) -> None:
        answers = [api.get("checkouts").status_code for _ in range(3)]
        assert answers == [200, 200, 429]
        refused = [api.post("checkouts", factories.order()) for _ in range(3)][-1]
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limited")
        assert refused["Retry-After"] == "1" and Checkout.objects.count() == 2

    @pytest.mark.rule("limit.buckets")
    def test_are_each_clients_own(self, api: Api, rival_api: Api) -> None:
        for _ in range(3):
            api.get("checkouts")
        assert rival_api.get("checkouts").status_code == 200

    @pytest.mark.rule("limit.no_redis")
    def test_of_a_process_are_counted_by_one_thread_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The library starts a thread of its own unless one is alive, and a thread starts once."""
        counting = threading.Semaphore()

        def hit(*_: object) -> bool:
            assert counting.acquire(blocking=False), "another thread counts"
            time.sleep(0.01)
            counting.release()
            return True

        monkeypatch.setattr(limits, "_out_until", float("inf"))
        monkeypatch.setattr(limits, "_own", lambda: SimpleNamespace(hit=hit))
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda key: limits.spend("reads", key), "abcdefgh"))

    @pytest.mark.rule("limit.no_redis")
    def test_count_in_this_process_while_redis_is_out(
        self, api: Api, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.REDIS_URL = "unix:///nowhere/valkey.sock"
        limits._shared.cache_clear()
        try:
            assert [api.get("checkouts").status_code for _ in range(3)] == [200, 200, 429]
        finally:
            limits._shared.cache_clear()
            monkeypatch.setattr(limits, "_out_until", 0.0)


@pytest.mark.rule("limit.buckets", "limit.last_capture")
class TestCapture:
    def test_has_a_bucket_of_its_own_and_is_never_refused_at_the_end_of_a_hold(
        self, api: Api, unpaid: Checkout, in_doubt: InDoubt
    ) -> None:
        in_doubt("capture")
        path = f"checkouts/{unpaid.pk}/capture"
        for _ in range(2):
            api.post("checkouts", factories.order())
        answers = [api.post(path, {"amount": 1}).status_code for _ in range(3)]
        assert answers == [422, 422, 429]
        unpaid.refresh_from_db()
        make_late(unpaid)
        assert api.post(path, {"amount": 1}).status_code == 422

    def test_is_not_refused_before_anybody_has_begun_to_capture_the_hold(
        self, api: Api, rival_api: Api, held: Checkout
    ) -> None:
        empty = f"checkouts/{UUID(int=1)}/capture"
        assert [api.post(empty).status_code for _ in range(3)] == [404, 404, 429]
        path = f"checkouts/{held.pk}/capture"
        assert [rival_api.post(path).status_code for _ in range(3)] == [404, 404, 429]
        assert api.post(f"checkouts/{held.pk}/cancel").status_code == 429
        assert [api.post(path).status_code for _ in range(2)] == [200, 429]


@pytest.mark.rule("token.failures")
class TestTokenFailures:
    def test_are_limited_per_client_and_address(self, api: Api) -> None:
        wrong = credentials(api, client_secret="wrong")
        assert [ask(wrong).status_code for _ in range(3)] == [401, 401, 429]
        assert ask(credentials(api)).status_code == 429
        assert ask(credentials(api, client_id="other")).status_code == 401
