from collections.abc import Iterator

import pytest

from tests.journeys import receiver as receivers
from tests.journeys import service as services
from tests.journeys.merchant import Merchant
from tests.journeys.receiver import Receiver
from tests.journeys.service import Service


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The whole of `make run`, for every journey that breaks nothing."""
    with services.running(tmp_path_factory.mktemp("service")) as started:
        yield started


@pytest.fixture
def merchant(service: Service) -> Iterator[Merchant]:
    """A merchant of this test alone; afterwards the ledger must still be proved by the states."""
    yield service.new_merchant()
    service.prove_ledger()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint of this test alone; whatever reached it must have been signed for it."""
    with receivers.listening() as endpoint:
        yield endpoint
    assert endpoint.refused == []


@pytest.fixture
def subscribed(merchant: Merchant, receiver: Receiver) -> Merchant:
    """The merchant, whose events all go to the receiver."""
    receiver.secrets = [merchant.subscribe(receiver.url)]
    return merchant
