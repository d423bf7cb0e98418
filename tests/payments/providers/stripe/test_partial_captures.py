"""If staff capture only a part of a hold in Stripe's dashboard, an operator can end our own capture of the hold."""

from collections.abc import Callable

import pytest
from stripe.params import PaymentIntentCaptureParams

from checkout import authorizations, captures, mate_shares, refunds, tasks
from checkout.models import Checkout
from checkout.remedies import giving_up
from payments.models import Discrepancy, Operation, Payment
from payments.provider import CardUse
from tests import mates
from tests.factories import CAUSE, CustomerFactory, make_late
from tests.outages import pump
from tests.payments.providers.conformance.desk import Card
from tests.payments.providers.conformance.stripe import StripeDesk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven"), pytest.mark.rule("doubt.amount")]
NOTE = "The shop captured half of it"
BACK = "https://pay.example/back"


def capture_half(desk: StripeDesk, payment: Payment) -> None:
    half: PaymentIntentCaptureParams = {"amount_to_capture": payment.amount // 2}
    desk.dashboard.v1.payment_intents.capture(payment.provider_reference, half)


@pytest.fixture
def held(desk: StripeDesk, unpaid: Checkout) -> Callable[[], Payment]:
    """Return a function that pays the order, and returns the payment that holds the money."""

    def pay() -> Payment:
        use = CardUse(desk.token(Card.GOOD, unpaid.pk), BACK)
        lead = Checkout.objects.get(pk=unpaid.pk).lead or CustomerFactory.create()
        authorizations.authorize(unpaid.pk, card=use, lead=lead, cause=CAUSE)
        return Payment.objects.get(subject=unpaid.pk)

    return pay


def test_an_order_ends_after_its_capture_is_given_up(
    desk: StripeDesk, unpaid: Checkout, held: Callable[[], Payment]
) -> None:
    payment = held()
    capture_half(desk, payment)
    with pytest.raises(captures.OutcomeUnknown):
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    unpaid.refresh_from_db()
    make_late(unpaid)
    tasks.expire_due()
    pump()
    assert Checkout.objects.get().status == "authorized", "the answer about the capture is unclear"
    giving_up.give_up(Operation.objects.get(kind="capture").pk, note=NOTE, cause=CAUSE)
    pump()
    assert Checkout.objects.get().status == "voided" and not Operation.objects.filter(ended_at=None).exists()
    kinds = Discrepancy.objects.filter(subject=payment.pk).values_list("kind", flat=True)
    assert set(kinds) == {"captured_another_amount", "captured_after_the_end"}


def test_a_refund_ends_after_the_capture_of_a_share_is_given_up(
    desk: StripeDesk, unpaid: Checkout, held: Callable[[], Payment]
) -> None:
    (share,) = mates.split(unpaid, 3000)
    held()
    captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    card = CardUse(desk.token(Card.REFUND_FAILS, share.pk), BACK)
    mate_shares.pay(share.pk, card=card, mate=CustomerFactory.create(), cause=CAUSE)
    payment = Payment.objects.get(subject=share.pk)
    capture_half(desk, payment)
    pump()
    refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
    for _ in range(3):
        desk.settle()
        pump()
    assert Checkout.objects.get().status == "refunding", "the refund waits for the share"
    capture = Operation.objects.get(kind="capture", payment=payment)
    giving_up.give_up(capture.pk, note=NOTE, cause=CAUSE)
    pump()
    share.refresh_from_db()
    assert (Checkout.objects.get().status, share.status) == ("refunded", "cancelled")
    assert not Operation.objects.filter(ended_at=None).exists()
