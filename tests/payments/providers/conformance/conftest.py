from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from payments import provider
from tests.payments.providers.conformance.asynchronous import AsynchronousDesk
from tests.payments.providers.conformance.desk import Desk
from tests.payments.providers.conformance.sandbox import SandboxDesk
from tests.payments.providers.conformance.stripe import StripeDesk
from tests.payments.stripe_peer import line, shops


@pytest.fixture(scope="session")
def running_peer() -> Iterator[line.Remote]:
    with line.running() as remote:
        yield remote


@pytest.fixture(params=["sandbox", "stripe", "asynchronous"])
def desk(
    request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch, db: None
) -> Iterator[Desk]:
    """The desk of each provider in turn, whose adapter is the one in use."""
    with shops.listening() as shop:
        made: Desk
        if request.param == "sandbox":
            made = SandboxDesk(settings, monkeypatch)
        elif request.param == "stripe":
            peer: line.Remote = request.getfixturevalue("running_peer")
            peer.switch("clear")
            made = StripeDesk(settings, peer, shop)
        else:
            made = AsynchronousDesk()
        monkeypatch.setattr(provider, "current", lambda: made.provider)
        yield made
