"""Fixtures for tests of the operators' pages: a failed refund, and a delivery that waits."""

from collections.abc import Callable

import pytest

from checkout import captures, refunds
from checkout.models import Checkout, Refund
from config.lib import clock
from payments.models import Merchant, Operation
from tests import factories
from tests.factories import CAUSE
from webhooks.models import Delivery

URL = "http://127.0.0.1:9/hooks"


@pytest.fixture
def failed(unpaid: Checkout, pay: Callable[..., Checkout], posted: list[int]) -> Refund:
    """Return a refund that failed because the card's account was closed."""
    order = captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
    refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
    values = {"state": "failed", "reason": "card_account_closed", "ended_at": clock.now()}
    Operation.objects.filter(kind="refund").update(next_attempt_at=None, **values)
    Refund.objects.update(status="failed", failure_reason="card_account_closed")
    return Refund.objects.get()


@pytest.fixture
def delivery(acme: Merchant, at: Callable[[str], Checkout]) -> Delivery:
    """Return the delivery of checkout.authorized, which has not been sent yet."""
    factories.subscribe(acme, url=URL, event_types=["*"])
    at("authorized")
    return Delivery.objects.get()
