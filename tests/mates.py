"""The acts of Lea's mates in the tests: they are asked for shares and pay them; time passes at the bank."""

from uuid import UUID

from checkout import authorizations, mate_shares, operation_recovery, refunds
from checkout.models import Checkout, Customer, PaymentRequest, Refund
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
ACCOUNT_CLOSED = "4000000000005126"  # the refund fails later


def split(checkout: Checkout, *amounts: int) -> list[PaymentRequest]:
    """Ask one mate for each amount."""
    lead = Checkout.objects.values_list("lead", flat=True).get(pk=checkout.pk)
    mate_shares.split(checkout.pk, [mate_shares.Share(amount) for amount in amounts], lead=lead)
    return list(checkout.payment_requests.order_by("position"))


def pay(share: PaymentRequest, card: str = FINNS, mate: Customer | None = None) -> authorizations.Paid:
    """Hold a mate's card for a share; the pump has not run yet."""
    token = bank.tokenise(subject=share.pk, number=card)
    return mate_shares.pay(share.pk, card=CardUse(token), mate=mate or CustomerFactory.create(), cause=CAUSE)


def pump(checkout_uuid: UUID, rounds: int = 1) -> None:
    """Run the pump so many times; each time, all open operations of the service are due."""
    for _ in range(rounds):
        of_checkout = Operation.objects.filter(payment__checkout_uuid=checkout_uuid, ended_at=None)
        of_checkout.exclude(purpose=Operation.Purpose.OUTSIDE).update(next_attempt_at=LONG_AGO)
        operation_recovery.finish_all_of(checkout_uuid)


def finish(operation: Operation) -> None:
    """Let the pump take only this operation, if it is due."""
    for claimed in operation_queue.claim(limit=1, operation_uuid=operation.pk):
        operation_recovery.finish(claimed)


def settled(share: PaymentRequest) -> str:
    """Run the pump until no operation is open, and return the status of the share."""
    of_checkout = Operation.objects.filter(payment__checkout_uuid=share.checkout_id, ended_at=None)
    for _ in range(20):
        if not of_checkout.exists():
            break
        pump(share.checkout_id)
    share.refresh_from_db()
    return share.status


def borne(order: Checkout) -> dict[str, int]:
    """Return the amount that each card has paid and not got back, by last 4."""
    payments = Payment.objects.filter(checkout_uuid=order.pk).values_list("pk", flat=True)
    rows = Charge.objects.filter(payment__in=list(payments), state="captured")
    return {row.last4: row.amount - row.refunded_amount for row in rows}


def give_back(order: Checkout) -> Refund:
    return refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE).refund
