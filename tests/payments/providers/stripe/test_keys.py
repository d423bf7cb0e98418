"""Stripe can answer a refund with an error and still carry it out later. The card is refunded only once."""

import pytest

from checkout import authorizations, captures, refunds
from checkout.models import Checkout
from payments.models import Operation
from payments.provider import CardUse
from tests.factories import CAUSE, CustomerFactory
from tests.outages import pump
from tests.payments.providers.conformance.desk import Card
from tests.payments.providers.conformance.stripe import StripeDesk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven"), pytest.mark.rule("doubt.old_key")]


@pytest.fixture
def refund(desk: StripeDesk, unpaid: Checkout) -> Operation:
    """Return the planned refund of an order that was paid at Stripe."""
    card = CardUse(desk.token(Card.GOOD, unpaid.pk), "https://pay.example/confirmed")
    authorizations.authorize(unpaid.pk, card=card, lead=CustomerFactory.create(), cause=CAUSE)
    captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
    return Operation.objects.get(kind="refund")


def test_500_that_stripe_repeats_gets_no_new_key_and_what_is_carried_out_later_is_found(
    desk: StripeDesk, refund: Operation
) -> None:
    desk.peer.switch("fault", method="POST", path="/v1/refunds", mode="error", when="later", seconds=60)
    for _ in range(4):
        pump()
    assert Operation.objects.get(kind="refund").state == "unknown"
    assert desk.peer.switch("broken_keys") == [str(refund.pk)]
    desk.peer.switch("advance", seconds=61)
    pump()
    desk.peer.switch("settle_refunds")
    pump()
    done = Operation.objects.get(kind="refund")
    assert (done.pk, done.state) == (refund.pk, "succeeded")
    assert [made.amount for made in desk.dashboard.v1.refunds.list().data] == [refund.amount]
