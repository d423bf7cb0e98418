"""Helpers that simulate events outside the service: disputes, returned refunds, and dashboard refunds."""

from collections.abc import Callable

from checkout import captures, tasks
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.proof import ledger_proof
from checkout.syncing import sync
from config.lib import clock
from payments.models import Dispute, Movement, Operation, Payment
from payments.provider import Verdict
from payments.providers.sandbox import client, notifications, settling
from payments.providers.sandbox.models import Call
from tests import factories, mates
from tests.factories import CAUSE

DISPUTED = "4000000000000259"
RETURNS = "4000000000007726"


def dispute(payment: Payment | None, amount: int | None = None) -> Dispute:
    """Dispute a payment, or only `amount` of it, and return the dispute.

    The bank notifies the service, which then reads the payment from the bank.
    """
    assert payment is not None
    client.call_bank("dispute", payment=payment.pk, amount=amount)
    hear()
    return Dispute.objects.select_related("payment").get(payment=payment)


def decide(found: Dispute, *, is_won: bool) -> None:
    client.call_bank("decide", payment=found.payment_id, is_won=is_won)
    hear()
    found.refresh_from_db()


def hear() -> None:
    notifications.send_due()
    tasks.answer_inquiries()


def balances(checkout: Checkout) -> dict[str, int]:
    return {account: amount for account, amount in factories.balances(checkout.pk).items() if amount}


def settle(checkout: Checkout) -> None:
    """Let the bank settle all calls that it has accepted. No refund is returned yet."""
    mates.pump(checkout.pk)
    Call.objects.filter(verdict=Verdict.PENDING).update(settles_at=clock.now())
    mates.pump(checkout.pk)
    checkout.refresh_from_db()


def reimburse(order: Checkout, pay: Callable[..., Checkout], amount: int = 3000) -> PaymentRequest:
    """Pay Finn's share and reimburse the lead. Return the share.

    The refund to the lead's card will be returned by the bank, but is not returned yet.
    """
    (share,) = mates.split(order, amount)
    captures.capture(order.merchant, pay(order, RETURNS).pk, cause=CAUSE)
    mates.pay(share)
    mates.pump(order.pk, rounds=3)
    settle(order)
    return share


def come_back() -> None:
    """Let three seconds pass at the bank, after which it returns refunds.

    The bank notifies the service, which then reads the payments from the bank.
    """
    settling.advance(payments=list(Payment.objects.values_list("pk", flat=True)), seconds=3)
    hear()


def returned(checkout: Checkout) -> Operation:
    """Return the order's refund operation. The bank settled it and later returned it."""
    back = Movement.objects.get(checkout_uuid=checkout.pk, kind=Movement.Kind.REFUND_RETURNED)
    assert back.operation_id is not None
    return Operation.objects.select_related("payment").get(pk=back.operation_id)


def refund_outside(payment: Payment | None, amount: int, *, is_pending: bool = False) -> str:
    """Refund `amount` of a payment in the bank's dashboard, and return the bank's reference.

    The bank notifies the service, which then reads the payment from the bank.
    """
    assert payment is not None
    reference: str = client.call_bank(
        "act_in_dashboard", kind="refund", payment=payment.pk, amount=amount, is_pending=is_pending
    )
    if not is_pending:
        Call.objects.filter(pk=reference, verdict=Verdict.PENDING).update(settles_at=clock.now())
    hear()
    return reference


def ask_about(payment: Payment | None) -> None:
    """Synchronise the payment with the bank's books."""
    assert payment is not None
    sync.sync(payment.pk)


def end_of(refund: Operation) -> tuple[str, str, str]:
    refund.refresh_from_db()
    checkout = Checkout.objects.get(pk=refund.payment.checkout_uuid)
    assert ledger_proof.find_breaches() == []
    return checkout.status, refund.state, Refund.objects.latest("created_at").status
