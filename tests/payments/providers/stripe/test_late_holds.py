"""After a failed authorization, the PaymentIntent holds no money, even if the browser confirms it again."""

from collections.abc import Callable

import pytest

from checkout import authorizations, captures, mate_shares, operation_recovery, tasks
from checkout.models import Checkout, PaymentRequest
from checkout.proof import ledger_proof
from checkout.syncing import notifications
from payments import tasks as payments_tasks
from payments.models import Discrepancy, Payment
from payments.provider import CardUse
from tests import mates
from tests.factories import CAUSE, CustomerFactory
from tests.outages import pump
from tests.payments.providers.conformance.desk import Card
from tests.payments.providers.conformance.stripe import StripeDesk

pytestmark = [pytest.mark.django_db, pytest.mark.rule("pay.confirmed_again")]
BACK = "https://pay.example/back"
Pays = Callable[[Card], Payment]


@pytest.fixture
def pays(desk: StripeDesk, unpaid: Checkout) -> Pays:
    """Return a function that tries to pay the order with a card and returns the payment."""

    def try_to_pay(card: Card) -> Payment:
        use = CardUse(desk.token(card, unpaid.pk), BACK)
        lead = Checkout.objects.get(pk=unpaid.pk).lead or CustomerFactory.create()
        authorizations.authorize(unpaid.pk, card=use, lead=lead, cause=CAUSE)
        return Payment.objects.latest("created_at")

    return try_to_pay


@pytest.fixture
def refused(desk: StripeDesk, unpaid: Checkout, pays: Pays) -> Payment:
    """Return a payment that was declined because the payer failed 3-D Secure."""
    payment = pays(Card.ASKS)
    desk.answer(payment, confirms=False)
    operation_recovery.finish_for_payer(unpaid.pk)
    payment.refresh_from_db()
    assert (payment.status, payment.decline_reason) == ("declined", "challenge_failed")
    return payment


def intent_of(desk: StripeDesk, payment: Payment) -> str:
    return desk.dashboard.v1.payment_intents.retrieve(payment.provider_reference).status


def without_void(payment: Payment) -> None:
    """Delete the payment's void, as if it had been lost."""
    payment.operations.filter(kind="void").delete()


class TestAFailedAuthorization:
    def test_is_cancelled_at_stripe_so_that_it_cannot_be_confirmed(
        self, desk: StripeDesk, unpaid: Checkout, refused: Payment
    ) -> None:
        pump()
        assert intent_of(desk, refused) == "canceled"
        assert desk.confirm_again(refused) == 400
        assert intent_of(desk, refused) == "canceled"

    def test_that_is_confirmed_again_before_its_void_is_released_by_the_void(
        self, desk: StripeDesk, unpaid: Checkout, refused: Payment
    ) -> None:
        assert desk.confirm_again(refused) == 200
        assert intent_of(desk, refused) == "requires_capture"
        pump()
        assert intent_of(desk, refused) == "canceled"
        assert [row.state for row in refused.operations.filter(kind="void")] == ["succeeded"]

    @pytest.mark.parametrize("card", [Card.DECLINED, Card.NO_MONEY, Card.EXPIRED])
    def test_declined_by_the_bank_is_cancelled_too(self, desk: StripeDesk, pays: Pays, card: Card) -> None:
        declined = pays(card)
        pump()
        assert intent_of(desk, declined) == "canceled"
        declined.refresh_from_db()
        assert declined.status == "declined", "which limits how many cards are tried"

    def test_does_not_block_another_card(
        self, desk: StripeDesk, unpaid: Checkout, refused: Payment, pays: Pays
    ) -> None:
        paid = pays(Card.GOOD)
        desk.confirm_again(refused)
        pump()
        assert (intent_of(desk, refused), intent_of(desk, paid)) == ("canceled", "requires_capture")
        assert captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE).status == "captured"
        assert ledger_proof.find_breaches() == []

    def test_of_a_share_is_cancelled_and_the_share_can_be_paid(
        self, desk: StripeDesk, unpaid: Checkout, pays: Pays
    ) -> None:
        (share,) = mates.split(unpaid, 3000)
        pays(Card.GOOD)
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        mate = CustomerFactory.create()
        for card, confirms in ((Card.ASKS, False), (Card.EXPIRED, None)):
            mate_shares.pay(share.pk, card=CardUse(desk.token(card, share.pk), BACK), mate=mate, cause=CAUSE)
            payment = Payment.objects.latest("created_at")
            if confirms is not None:
                desk.answer(payment, confirms=confirms)
            pump()
            desk.confirm_again(payment)
            pump()
            assert intent_of(desk, payment) == "canceled"
            assert PaymentRequest.objects.get().status == "open"


class TestAHoldThatIsFoundLater:
    """A hold that is found later, on a PaymentIntent that was not cancelled at Stripe."""

    @pytest.fixture(autouse=True)
    def held_again(self, desk: StripeDesk, refused: Payment) -> None:
        without_void(refused)
        assert desk.confirm_again(refused) == 200
        pump()
        assert intent_of(desk, refused) == "requires_capture", "nobody knows yet"

    def test_by_a_notification_is_released(self, desk: StripeDesk, refused: Payment) -> None:
        for message in desk.messages():
            assert notifications.receive(message).status_code == 204
        tasks.answer_inquiries()
        pump()
        assert intent_of(desk, refused) == "canceled"

    def test_by_the_nightly_reconciliation_is_released(self, desk: StripeDesk, refused: Payment) -> None:
        payments_tasks.reconcile()
        tasks.answer_inquiries()
        pump()
        assert intent_of(desk, refused) == "canceled"


def test_ended_payments_cause_no_discrepancy(desk: StripeDesk, refused: Payment, pays: Pays) -> None:
    """After both payments have ended, neither notifications nor reconciliation report a discrepancy."""
    declined = pays(Card.EXPIRED)
    desk.confirm_again(refused)
    pump()
    for message in desk.messages():
        notifications.receive(message)
    payments_tasks.reconcile()
    tasks.answer_inquiries()
    assert {intent_of(desk, payment) for payment in (refused, declined)} == {"canceled"}
    assert list(Discrepancy.objects.values_list("kind", flat=True)) == []
