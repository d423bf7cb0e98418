import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings
from redis import Redis

from checkout.models import Checkout
from config.lib import limits
from tests import factories
from tests.conftest import Api
from tests.factories import make_late
from tests.outages import InDoubt
from tests.portal.oauth.test_token import ask, credentials

pytestmark = pytest.mark.django_db


def read_redis_url_again() -> None:
    """Make the next count read REDIS_URL again."""
    limits._redis_client.cache_clear()
    limits._spend_script.cache_clear()


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
    def test_are_separate_for_each_client(self, api: Api, rival_api: Api) -> None:
        for _ in range(3):
            api.get("checkouts")
        assert rival_api.get("checkouts").status_code == 200

    @pytest.mark.rule("limit.no_redis")
    def test_are_counted_by_one_thread_of_a_process_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only one thread of a process counts at a time.

        The library starts a timer thread at the first count. Two threads that count for the first time together would
        start two timer threads.
        """
        counting = threading.Semaphore()

        def hit(*_: object) -> bool:
            assert counting.acquire(blocking=False), "another thread counts"
            time.sleep(0.01)
            counting.release()
            return True

        monkeypatch.setattr(limits, "_redis_down_until", float("inf"))
        monkeypatch.setattr(limits, "_process_limiter", lambda: SimpleNamespace(hit=hit))
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda key: limits.spend("reads", key), "abcdefgh"))

    @pytest.mark.rule("limit.no_redis")
    def test_count_in_this_process_while_redis_is_unavailable(
        self, api: Api, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The calls below change this value, and pytest restores it after the test.
        monkeypatch.setattr(limits, "_redis_down_until", 0.0)
        settings.REDIS_URL = "unix:///nowhere/valkey.sock"
        read_redis_url_again()
        try:
            assert [api.get("checkouts").status_code for _ in range(3)] == [200, 200, 429]
            assert limits._redis_down_until > 0
        finally:
            read_redis_url_again()


def reached(call: Callable[..., Any], *arguments: Any) -> int:
    """Return how many calls pass before the first one is refused."""
    count = 0
    while call(*arguments).status_code != 429:
        count += 1
    return count


@pytest.fixture(params=["Redis", "no Redis"])
def _counts_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test twice: once with the counts in Redis, and once in the process, as when Redis is down."""
    if request.param == "no Redis":
        monkeypatch.setattr(limits, "_redis_down_until", float("inf"))


@pytest.mark.usefixtures("_counts_in")
@pytest.mark.rule("limit.merchant")
class TestMerchant:
    def test_three_keys_together_have_twice_the_limit_of_one(self, api: Api) -> None:
        others = [Api(api.merchant) for _ in range(2)]
        passed = [reached(one.get, "checkouts") for one in (api, *others)]
        assert passed == [2, 2, 0]

    def test_has_separate_buckets_for_creates_and_actions(self, api: Api) -> None:
        others = [Api(api.merchant) for _ in range(2)]
        for one in (api, *others):
            reached(one.get, "checkouts")
        assert [reached(one.post, "checkouts", {}) for one in (api, *others)] == [2, 2, 0]
        empty = f"checkouts/{UUID(int=1)}/cancel"
        assert [reached(one.post, empty) for one in (api, *others)] == [2, 2, 0]

    def test_calls_refused_by_a_keys_limit_do_not_count_for_the_merchant(self, api: Api) -> None:
        other = Api(api.merchant)
        for _ in range(20):
            api.get("checkouts")
        assert reached(other.get, "checkouts") == 2

    def test_does_not_affect_other_merchants(self, api: Api, rival_api: Api) -> None:
        for one in (api, Api(api.merchant)):
            reached(one.get, "checkouts")
        assert reached(rival_api.get, "checkouts") == 2

    @pytest.mark.rule("limit.last_capture")
    def test_never_refuses_the_first_capture_of_a_hold(self, api: Api, held: Checkout) -> None:
        empty = f"checkouts/{UUID(int=1)}/capture"
        for one in (Api(api.merchant), Api(api.merchant)):
            assert reached(one.post, empty) == 2
        assert api.post(f"checkouts/{held.pk}/cancel").status_code == 429, "the merchant has no call left"
        assert api.post(f"checkouts/{held.pk}/capture").status_code == 200


class TestRoundTrips:
    @pytest.fixture
    def commands_sent(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Record the commands that are sent to Redis in a list, and return the list."""
        limits.spend("reads", "the first use loads the script")
        commands = list[str]()
        execute: Any = Redis.execute_command

        def noting(client: Redis, *arguments: Any, **options: Any) -> Any:
            commands.append(arguments[0])
            return execute(client, *arguments, **options)

        monkeypatch.setattr(Redis, "execute_command", noting)
        return commands

    @pytest.mark.rule("limit.merchant")
    def test_an_api_call_costs_one_round_trip(self, api: Api, commands_sent: list[str]) -> None:
        api.get("checkouts")
        assert commands_sent == ["EVALSHA"]

    def test_a_check_costs_one_round_trip(self, commands_sent: list[str]) -> None:
        assert limits.has_calls_left("reads", "one", shared=limits.Shared(("all",), 2))
        assert commands_sent == ["MGET"]


class TestTime:
    def test_each_count_ends(self) -> None:
        limits.spend("reads", "one", shared=limits.Shared(("all",), 2))
        counts = limits._counts_to_spend("reads", ("one",), limits.Shared(("all",), 2))
        assert [limits._redis_client().ttl(count.key) for count in counts] == [60, 60]


@pytest.mark.rule("limit.buckets", "limit.last_capture")
class TestCapture:
    def test_has_its_own_bucket_and_is_never_refused_after_the_deadline(
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

    def test_is_not_refused_on_the_first_attempt_for_a_hold(
        self, api: Api, rival_api: Api, held: Checkout
    ) -> None:
        empty = f"checkouts/{UUID(int=1)}/capture"
        assert [api.post(empty).status_code for _ in range(3)] == [404, 404, 429]
        path = f"checkouts/{held.pk}/capture"
        assert [rival_api.post(path).status_code for _ in range(3)] == [404, 404, 429]
        assert api.post(f"checkouts/{held.pk}/cancel").status_code == 429
        assert [api.post(path).status_code for _ in range(2)] == [200, 429]


@pytest.mark.usefixtures("_counts_in")
@pytest.mark.rule("token.failures")
class TestTokenFailures:
    def test_are_limited_per_client_and_address(self, api: Api) -> None:
        wrong = credentials(api, client_secret="wrong")
        assert [ask(wrong).status_code for _ in range(3)] == [401, 401, 429]
        assert ask(credentials(api)).status_code == 429
        assert ask(credentials(api, client_id="other")).status_code == 401
