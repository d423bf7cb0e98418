from datetime import datetime, timedelta

import pytest

from config.lib import clock
from payments.models import Merchant


@pytest.fixture
def began(acme: Merchant) -> datetime:
    return clock.now() - timedelta(minutes=1)
