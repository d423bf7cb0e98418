"""A repaired database is open again, also for the next test."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from config.lib import clock
from payments import restore_guard
from payments.models import Merchant


@pytest.fixture(autouse=True)
def _open_again_after_it() -> Iterator[None]:
    yield
    restore_guard._is_open._value, restore_guard._is_open._read_at = True, float("inf")


@pytest.fixture
def began(acme: Merchant) -> datetime:
    return clock.now() - timedelta(minutes=1)
