from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from payments import provider
from tests.payments.providers.conformance.stripe import StripeDesk
from tests.payments.stripe_peer import line, shops


@pytest.fixture(scope="session")
def running_peer() -> Iterator[line.Remote]:
    with line.running() as remote:
        yield remote


@pytest.fixture
def desk(
    running_peer: line.Remote, settings: Settings, monkeypatch: pytest.MonkeyPatch, db: None
) -> Iterator[StripeDesk]:
    """Stripe's desk, whose adapter is the one in use."""
    running_peer.switch("clear")
    with shops.listening() as shop:
        made = StripeDesk(settings, running_peer, shop)
        monkeypatch.setattr(provider, "current", lambda: made.provider)
        yield made
