from collections.abc import Callable

import pytest

from checkout import captures
from checkout.models import Checkout, PaymentRequest
from tests import mates
from tests.factories import CAUSE


@pytest.fixture
def links(unpaid: Checkout, pay: Callable[..., Checkout]) -> list[PaymentRequest]:
    """Split an order of £90 between the lead and two mates, who are asked for £30 and £20; capture the order."""
    asked = mates.split(unpaid, 3000, 2000)
    captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
    return asked


@pytest.fixture
def share(unpaid: Checkout, pay: Callable[..., Checkout]) -> PaymentRequest:
    """Split an order of £90 so that Finn is asked for £20; capture the order."""
    (share,) = mates.split(unpaid, 2000)
    captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
    return share
