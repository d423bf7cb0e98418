from collections.abc import Callable

import pytest

from checkout import transitions
from checkout.models import Checkout, PaymentRequest
from tests import mates
from tests.factories import CAUSE


@pytest.fixture
def shares(unpaid: Checkout, pay: Callable[..., Checkout]) -> list[PaymentRequest]:
    """£90.00, captured: Finn is asked for £20.00, Amy for £30.00; £40.00 stay with Lea."""
    asked = mates.split(unpaid, 2000, 3000)
    pay(unpaid)
    transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    return [PaymentRequest.objects.get(pk=share.pk) for share in asked]


@pytest.fixture
def order(unpaid: Checkout, shares: list[PaymentRequest]) -> Checkout:
    return Checkout.objects.select_related("merchant", "payment", "lead").get(pk=unpaid.pk)
