"""What remedies check about a refund part or reimbursement: its newest attempt, and whether it is still wanted."""

from checkout.models import Checkout, PaymentRequest, Refund
from checkout.remedies.asking import NotAllowed
from checkout.states import ShareStatus, Status
from payments import disputes, planning
from payments.models import Operation
from payments.outside import bookings, returns

State = Operation.State
UNDER_WAY = "It is under way just now. Look again in a minute."


def newest(part: Operation) -> Operation | None:
    """Return the newest attempt at the same part that was sent, None if none was."""
    return planning.parts_like(part).filter(attempts__gt=0).order_by("created_at", "pk").last()


def check_wanted(checkout: Checkout, part: Operation) -> None:
    """Raise NotAllowed unless the part is still to be given back. Must be called with the checkout locked."""
    is_back = returns.concerns(part)
    if is_back and not returns.is_outstanding(part):
        raise NotAllowed("The payer has got it since.")
    if not is_back and planning.parts_like(part).filter(state=State.SUCCEEDED).exists():
        raise NotAllowed("The card has got it since.")
    if _is_disputed(checkout, part):
        raise NotAllowed("A card of the order is disputed: the money would go twice.")
    if not is_back and bookings.is_closed(part):
        raise NotAllowed("It was settled otherwise before.")
    if bookings.left(part.payment) <= 0:
        raise NotAllowed("Nothing is left on this card to give back.")
    if is_back:
        return
    if part.purpose == Operation.Purpose.REIMBURSEMENT:
        is_owed = PaymentRequest.objects.filter(pk=part.reimbursed_share, status=ShareStatus.PAID).exists()
        if not is_owed or checkout.status != Status.CAPTURED:
            raise NotAllowed("Nothing is owed to the lead for this share now.")
        return
    under_way = checkout.refunds.filter(status=Refund.Status.PENDING).values_list("pk", flat=True)
    if checkout.status != Status.REFUNDING or part.refund_uuid not in under_way:
        raise NotAllowed("The refund that it belongs to has ended. Its merchant can refund again.")


def _is_disputed(checkout: Checkout, part: Operation) -> bool:
    """Whether a dispute stands in the way of a part: of a refund that came back, only one on its own card."""
    if returns.concerns(part) and part.purpose == Operation.Purpose.REFUND_PART:
        return disputes.stands_on(part.payment_id)
    return disputes.standing(checkout.pk) is not None
