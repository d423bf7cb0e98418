from collections.abc import Iterator

import pytest
from stripe import StripeClient

from tests.payments.stripe_peer import remote


@pytest.fixture(scope="session")
def _running() -> Iterator[remote.Remote]:
    with remote.running() as peer:
        yield peer


@pytest.fixture
def peer(_running: remote.Remote) -> remote.Remote:
    """Return a peer without any objects."""
    _running.switch("clear")
    return _running


@pytest.fixture
def stripe(peer: remote.Remote) -> StripeClient:
    """Return the official library's client for the platform's account in test mode."""
    return peer.client()
