"""Forbidden targets are refused twice: when they are saved through the API, and when the sender connects."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from config.lib.web import http
from tests.conftest import Api
from tests.refusals import nothing_moves, refused
from tests.webhooks.receivers.canary import LITERALS, ODD, Canary, listening
from tests.webhooks.receivers.receiving import Names
from tests.webhooks.story import emit, subscribe
from tests.webhooks.urls import forbidden
from webhooks import delivery_sender
from webhooks.models import Attempt, Subscription

NOT_ALLOWED = "address not allowed"


@pytest.fixture
def canary() -> Iterator[Canary]:
    with listening() as canary:
        yield canary


@pytest.fixture
def names(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Names:
    """Return the name servers that all merchants use. Forbid webhooks to loopback, as in production."""
    settings.WEBHOOK_LOOPBACK = False
    names = Names(["1.1.1.1"])
    monkeypatch.setattr(http, "resolver", lambda: names)
    return names


def register(api: Api, url: str) -> Any:
    return api.post("webhooks/subscription", {"url": url, "event_types": ["*"]})


class TestRegistering:
    def test_refuses_every_bad_url_without_a_dns_query(self, api: Api, names: Names, canary: Canary) -> None:
        ported = [f"https://{host}:{canary.port}/" for host in forbidden.BAD_HOSTS]
        with nothing_moves():
            for url in [*forbidden.BAD_URLS, *ported]:
                refused(register(api, url), 422, "validation_failed", "url")
        assert (names.asked, canary.visits) == (0, 0)

    def test_refuses_a_name_with_any_internal_address(self, api: Api, names: Names, canary: Canary) -> None:
        with nothing_moves():
            for number, address in enumerate(forbidden.INTERNAL):
                names.answers = ([address] if number % 2 else ["1.1.1.1", address],)
                answered = register(api, f"https://shop.example.com:{canary.port}/")
                error = refused(answered, 422, "validation_failed", "url")
                message = error["details"][0]["message"]
                assert "publicly reachable" in message and address not in message
        assert canary.visits == 0

    def test_stores_public_names_in_their_normal_form(self, api: Api, names: Names) -> None:
        assert register(api, "HTTPS://Shop.Example.COM.:443/hooks").status_code == 201
        assert Subscription.objects.get().url == "https://shop.example.com/hooks"


@pytest.mark.rule("target.each_connection")
@pytest.mark.django_db(transaction=True)
class TestRebinding:
    def test_is_refused_when_the_delivery_is_sent(self, api: Api, names: Names, canary: Canary) -> None:
        """Check a name that resolves to a public address when it is registered, and to this machine afterwards."""
        assert register(api, f"https://shop.example.com:{canary.port}/hooks").status_code == 201
        assert names.asked == 1
        names.answers = (["127.0.0.1"],)
        emit(Subscription.objects.get())
        assert send_all(1) == [NOT_ALLOWED]
        assert (names.asked, canary.visits) == (2, 0)

    def test_of_a_forbidden_url_that_was_stored_another_way_is_refused(
        self, names: Names, canary: Canary
    ) -> None:
        hosts = [host for host in [*LITERALS, *ODD] if host.isascii()]
        urls = [f"{scheme}://{host}:{canary.port}/" for host in hosts for scheme in ("http", "https")]
        for number, url in enumerate(urls):
            emit(subscribe(f"Acme {number}", url))
        assert send_all(len(urls)) == [NOT_ALLOWED] * len(urls)
        assert (names.asked, canary.visits) == (0, 0)


def send_all(count: int) -> list[str | None]:
    """Run a sender that forbids loopback until it has made `count` attempts. Return why they failed."""
    sender = delivery_sender.Sender(slots=100, allow_loopback=False)
    sender.start()
    sender.wake()
    deadline = time.monotonic() + 10
    ended = Attempt.objects.filter(ended_at__isnull=False)
    while ended.count() < count and time.monotonic() < deadline:
        time.sleep(0.02)
    sender.stop(0)
    connection.close()
    return list(ended.values_list("error_message", flat=True))
