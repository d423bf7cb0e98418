import pytest
from pytest_django.fixtures import Settings

from tests.bank import http_client, urls
from tests.payments.providers.sandbox.teller import BOTH


@pytest.fixture(params=BOTH)
def both_ways(request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test twice: with the bank in the same process, and with the bank as an HTTP server."""
    monkeypatch.setattr(urls, "HANG_SECONDS", 0.4)
    if request.param:
        settings.ROOT_URLCONF = "tests.bank.urls"
        http_client.connect(request.getfixturevalue("live_server").url, monkeypatch.setattr)
