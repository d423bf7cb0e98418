from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from payments import provider
from tests.payments.providers.conformance.stripe import StripeDesk
from tests.payments.stripe_peer import remote, shops


@pytest.fixture(scope="session")
def running_peer() -> Iterator[remote.Remote]:
    with remote.running() as peer:
        yield peer


@pytest.fixture
def desk(
    running_peer: remote.Remote, settings: Settings, monkeypatch: pytest.MonkeyPatch, db: None
) -> Iterator[StripeDesk]:
    """Yield Stripe's desk. During the test, the service uses its adapter."""
    running_peer.switch("clear")
    with shops.listening() as shop:
        made = StripeDesk(running_peer, shop)
        monkeypatch.setattr(provider, "current_provider", lambda: made.provider)
        made.use(settings)
        yield made
