"""Helpers for tests of shares: Lea asks mates for shares, the mates pay, and the pump runs."""

from uuid import UUID

from checkout import authorizations, mate_shares, operation_recovery, refunds
from checkout.models import Checkout, Customer, PaymentRequest, Refund
from checkout.split.share_rows import Share
from payments import operation_queue
from payments.models import Operation, Payment
from payments.provider import CardUse
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Charge
from tests.factories import CAUSE, CustomerFactory

LONG_AGO = "2020-01-01T00:00Z"
FINNS = "5555555555554444"
AMYS = "378282246310005"
CHALLENGED = "4000002500003155"
ACCOUNT_CLOSED = "4000000000005126"  # the bank accepts a refund to this card, but the refund fails later


def split(checkout: Checkout, *amounts: int, everyone_first: bool = False) -> list[PaymentRequest]:
    """Create a share for each amount, and return all shares of the checkout."""
    lead = Checkout.objects.values_list("lead", flat=True).get(pk=checkout.pk)
    shares = [Share(amount) for amount in amounts]
    mate_shares.split(checkout.pk, shares, lead=lead, everyone_first=everyone_first)
    return list(checkout.payment_requests.order_by("position"))


def pay(
    share: PaymentRequest, card: str = FINNS, mate: Customer | None = None, claim: str = ""
) -> authorizations.PaymentResult:
    """Pay a share with a mate's card, without running the pump afterwards."""
    used = CardUse(bank.tokenise(subject=share.pk, number=card))
    payer = mate or CustomerFactory.create()
    return mate_shares.pay(share.pk, card=used, mate=payer, cause=CAUSE, claim=claim)


def pump(checkout_uuid: UUID, rounds: int = 1) -> None:
    """Run the pump for a checkout `rounds` times.

    Before each run, make all open operations due, except those that were settled outside the service.
    """
    for _ in range(rounds):
        of_checkout = Operation.objects.filter(payment__checkout_uuid=checkout_uuid, ended_at=None)
        of_checkout.exclude(purpose=Operation.Purpose.OUTSIDE).update(next_attempt_at=LONG_AGO)
        operation_recovery.finish_due_operations(checkout_uuid)


def finish(operation: Operation) -> None:
    """Run the pump for only this operation. There is no effect if the operation is not due."""
    for claimed in operation_queue.claim(limit=1, operation_uuid=operation.pk):
        operation_recovery.finish_operation(claimed)


def settled(share: PaymentRequest) -> str:
    """Run the pump until the checkout has no open operation, and return the status of the share."""
    of_checkout = Operation.objects.filter(payment__checkout_uuid=share.checkout_id, ended_at=None)
    for _ in range(20):
        if not of_checkout.exists():
            break
        pump(share.checkout_id)
    share.refresh_from_db()
    return share.status


def borne(order: Checkout) -> dict[str, int]:
    """Map the last four digits of each card to the captured amount that was not refunded."""
    payments = Payment.objects.filter(checkout_uuid=order.pk).values_list("pk", flat=True)
    rows = Charge.objects.filter(payment__in=list(payments), state="captured")
    return {row.last4: row.amount - row.refunded_amount for row in rows}


def give_back(order: Checkout) -> Refund:
    return refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE).refund
