import pytest
from pytest_django.fixtures import Settings

from tests.bank import line, urls
from tests.payments.providers.sandbox.teller import BOTH


@pytest.fixture(params=BOTH)
def both_ways(request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs twice: the bank is called, and it is a peer on a socket."""
    monkeypatch.setattr(urls, "HANG_SECONDS", 0.4)
    if request.param:
        settings.ROOT_URLCONF = "tests.bank.urls"
        line.connect(request.getfixturevalue("live_server").url, monkeypatch.setattr)
