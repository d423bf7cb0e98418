"""Fixtures for a database with rows that were written under the old key."""

import pytest
from pytest_django.fixtures import Settings

from portal import key_check
from tests.config.lookup_keys.keys import OLD, Keys


@pytest.fixture
def keys(settings: Settings) -> Keys:
    made = Keys(settings)
    made.are(OLD)
    key_check.plant_again()
    return made
