from collections.abc import Iterator

import pytest
from stripe import StripeClient

from tests.payments.stripe_peer import line


@pytest.fixture(scope="session")
def _running() -> Iterator[line.Remote]:
    with line.running() as remote:
        yield remote


@pytest.fixture
def peer(_running: line.Remote) -> line.Remote:
    """A peer that knows nothing yet."""
    _running.switch("clear")
    return _running


@pytest.fixture
def stripe(peer: line.Remote) -> StripeClient:
    """The official library, as the platform in test mode."""
    return peer.client()
