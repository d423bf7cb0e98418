from collections.abc import Iterator

import pytest

from tests.journeys import receiver as receivers
from tests.journeys import service as services
from tests.journeys.merchant import Merchant
from tests.journeys.receiver import Receiver
from tests.journeys.service import Service


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run the complete `make run`, for tests that do not damage any of its processes."""
    with services.running(tmp_path_factory.mktemp("service")) as started:
        yield started


@pytest.fixture
def merchant(service: Service) -> Iterator[Merchant]:
    """Create a merchant for one test. After the test, fail unless the ledger agrees with the statuses."""
    yield service.new_merchant()
    service.prove_ledger()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Run a webhook endpoint for one test. After the test, fail unless every request had a valid signature."""
    with receivers.listening() as endpoint:
        yield endpoint
    assert endpoint.refused == []


@pytest.fixture
def subscribed(merchant: Merchant, receiver: Receiver) -> Merchant:
    """Subscribe the receiver's URL to all of the merchant's events. Return the merchant."""
    receiver.secrets = [merchant.subscribe(receiver.url)]
    return merchant
