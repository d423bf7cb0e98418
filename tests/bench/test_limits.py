"""The benchmarks can start, because the settings accept the limits with which they run."""

import pytest

from config.variables import value_types
from tests.bench.api import __main__ as api
from tests.bench.webhooks import stage
from tests.chaos import world

LIMITS = {*api.FREE_OF_LIMITS.values(), stage.UNLIMITED, *world.FREE_OF_LIMITS.values()}


@pytest.mark.parametrize("limit", sorted(LIMITS))
def test_the_settings_accept_the_limits_of_the_benchmarks(limit: str) -> None:
    assert value_types.RATE.parse(limit) == limit
