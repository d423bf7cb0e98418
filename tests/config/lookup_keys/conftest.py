"""A fixture that makes the process write rows with the old lookup key."""

import pytest
from pytest_django.fixtures import Settings

from portal import key_check
from tests.config.lookup_keys.keys import OLD, Keys


@pytest.fixture
def keys(settings: Settings) -> Keys:
    made = Keys(settings)
    made.are(OLD)
    key_check.rewrite_canary()
    return made
