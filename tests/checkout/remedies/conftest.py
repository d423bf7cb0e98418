from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models import F

from checkout import cancellations, captures, refunds
from checkout.models import Checkout, PaymentRequest
from payments import operations
from payments.models import Operation
from payments.providers.sandbox import fault_injection
from tests import mates
from tests.checkout.remedies.remedy import ACCOUNT_CLOSED
from tests.factories import CAUSE


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "LOOK_UP_SECONDS", 0.02)


@pytest.fixture
def share(unpaid: Checkout, pay: Callable[..., Checkout]) -> PaymentRequest:
    """Return a share of £20.00 in an order of £90.00.

    Finn paid the share with a card to which refunds fail, and Lea was reimbursed.
    """
    (share,) = mates.split(unpaid, 2000)
    pay(unpaid)
    captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    mates.pay(share, ACCOUNT_CLOSED)
    assert mates.settled(share) == "reimbursed"
    return share


@pytest.fixture
def stuck(unpaid: Checkout, share: PaymentRequest) -> Operation:
    """Return the part of a refund that Finn's card cannot accept. Lea's part is settled."""
    refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
    mates.pump(unpaid.pk, rounds=2)
    return Operation.objects.select_related("payment").get(
        payment__subject=share.pk, reason="card_account_closed"
    )


@pytest.fixture
def owed(unpaid: Checkout, pay: Callable[..., Checkout]) -> Operation:
    """Return the reimbursement of £20.00 that Lea's card cannot accept, because its account is closed."""
    (share,) = mates.split(unpaid, 2000)
    pay(unpaid, ACCOUNT_CLOSED)
    captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    mates.pay(share)
    mates.pump(unpaid.pk, rounds=3)
    return Operation.objects.select_related("payment").get(share_uuid=share.pk, reason="card_account_closed")


@pytest.fixture
def void(held: Checkout) -> Operation:
    """Return a void that the provider has refused."""
    fault_injection.set_fault(verb="void", mode="void_refused", times=1)
    cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
    mates.pump(held.pk)
    return Operation.objects.select_related("payment").get(kind="void", state="failed")


@pytest.fixture
def left_in_doubt(unpaid: Checkout, pay: Callable[..., Checkout]) -> Callable[..., Operation]:
    """Return a function that creates an authorization that was sent five minutes ago and is in doubt."""

    def pay_in_doubt(mode: str, card: str = "4242424242424242") -> Operation:
        fault_injection.set_fault(verb="authorize", mode=mode, times=1)
        pay(unpaid, card)
        Operation.objects.update(created_at=F("created_at") - timedelta(minutes=5))
        return Operation.objects.select_related("payment").get()

    return pay_in_doubt
