from collections.abc import Iterator

import pytest

from tests.chaos import world
from tests.chaos.world import World
from tests.journeys.service import Service


@pytest.fixture(scope="package")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Service]]:
    """Yield the world that all tests in this package share."""
    with world.running(tmp_path_factory.mktemp("world")) as parts:
        yield parts
