"""What a mate has paid goes back to the lead's card, as a part of the lead's own payment (INTERFACE.md 5)."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F

from checkout.models import Checkout, PaymentRequest
from checkout.states import ShareStatus
from payments import disputes, operations
from payments.cause import PUMP
from payments.models import Operation, Posting
from payments.operations import Purpose

RETRY_AFTER = timedelta(days=1)
TOO_LONG = timedelta(days=3)


def plan(checkout: Checkout, share: PaymentRequest, *, at: datetime, now: datetime) -> None:
    """Let the share go back to the lead from `at` on. Belongs under the checkout's lock.

    Not while a dispute is open on a card of the order, nor to a card that has got its money by one.
    """
    if disputes.is_open(checkout.pk) or (checkout.payment_id and disputes.is_lost(checkout.payment_id)):
        return
    purpose = Purpose(amount=share.amount, account=Posting.Account.LEAD, share_uuid=share.pk, at=at)
    payments = [checkout.payment_id] if checkout.payment_id else []
    operations.plan(payments, Operation.Kind.REFUND, now=now, cause=PUMP, purpose=purpose)


def go_on(checkout: Checkout, now: datetime, *, paused_for: timedelta) -> None:
    """A refund has failed: what is owed goes to the lead again, and each link gets back the time it lost."""
    links = checkout.payment_requests.filter(status=ShareStatus.OPEN)
    links.update(expires_at=F("expires_at") + paused_for)
    for share in checkout.payment_requests.filter(status=ShareStatus.PAID):
        if not Operation.objects.filter(share_uuid=share.pk, ended_at=None).exists():
            plan(checkout, share, at=max(now, due_at(share.paid_at or now)), now=now)


def due_at(paid_at: datetime) -> datetime:
    """When a share that was paid then is sent to the lead."""
    return paid_at + settings.REIMBURSEMENT_DELAY
