from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from payments import provider
from tests.payments.providers.conformance import stripe_test_mode
from tests.payments.providers.conformance.asynchronous_desk import AsynchronousDesk
from tests.payments.providers.conformance.desk import Desk
from tests.payments.providers.conformance.network import Network, carrying
from tests.payments.providers.conformance.sandbox import SandboxDesk
from tests.payments.providers.conformance.stripe import StripeDesk
from tests.payments.providers.conformance.stripe_test_mode import TestModeDesk
from tests.payments.stripe_peer import remote, shops


@pytest.fixture
def network() -> Iterator[Network]:
    with carrying(stripe_test_mode.API) as made:
        yield made


@pytest.fixture(scope="session")
def running_peer() -> Iterator[remote.Remote]:
    with remote.running() as peer:
        yield peer


# If STRIPE_TEST_KEY is set, the tests also run against Stripe's own test mode.
PROVIDERS = ["sandbox", "stripe", "asynchronous", *(["stripe's test mode"] if stripe_test_mode.KEY else [])]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the tests that cannot run in Stripe's test mode."""
    items[:] = [
        item
        for item in items
        if "test mode" not in item.name or item.name.partition("[")[0] not in stripe_test_mode.BEYOND
    ]


@pytest.fixture(params=PROVIDERS)
def desk(
    request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch, db: None
) -> Iterator[Desk]:
    """Yield the desk of each provider in turn. During the test, the service uses the adapter of this provider."""
    with shops.listening() as shop:
        made: Desk
        if request.param == "sandbox":
            made = SandboxDesk(settings, monkeypatch)
        elif request.param == "stripe":
            peer: remote.Remote = request.getfixturevalue("running_peer")
            peer.switch("clear")
            made = stripe_desk = StripeDesk(peer, shop)
            stripe_desk.use(settings)
        elif request.param == "stripe's test mode":
            made = TestModeDesk(settings, request.getfixturevalue("network"))
        else:
            made = AsynchronousDesk()
        monkeypatch.setattr(provider, "current_provider", lambda: made.provider)
        yield made
