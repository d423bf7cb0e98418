from collections.abc import Callable

import pytest

from checkout import captures
from checkout.models import Checkout, PaymentRequest
from payments.models import Operation
from tests import mates
from tests.factories import CAUSE


@pytest.fixture
def shared(unpaid: Checkout, pay: Callable[..., Checkout]) -> PaymentRequest:
    """Return a share of £30 in Lea's order of £90. Finn has paid the share, but Lea is not reimbursed yet."""
    (share,) = mates.split(unpaid, 3000)
    captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
    mates.pay(share)
    for operation in Operation.objects.filter(payment__subject=share.pk, ended_at=None):
        mates.finish(operation)
    share.refresh_from_db()
    assert share.status == "paid"
    return share
