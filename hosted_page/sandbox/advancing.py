"""Advances time for a checkout: what is still due of it comes nearer, and its pumps run."""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F

from checkout import doubt, expiry, sharing
from checkout.models import Checkout, LeadTold, PaymentRequest
from checkout.states import OperationInProgress, ShareStatus, Status
from payments import open_operations
from payments.models import Merchant, Operation, Payment
from payments.providers.sandbox import client
from webhooks import outbox


def advance(merchant: Merchant, checkout_uuid: UUID, seconds: int) -> None:
    """Let `seconds` pass for a checkout. Raises Checkout.DoesNotExist, OperationInProgress."""
    Checkout.objects.only("pk").get(pk=checkout_uuid, merchant=merchant)
    doubt.finish_all_of(checkout_uuid)  # what is due now, so that what follows it comes nearer too
    _bring_nearer(merchant, checkout_uuid, seconds)
    expiry.expire_one_if_due(checkout_uuid)
    for share in PaymentRequest.objects.filter(checkout=checkout_uuid, status=ShareStatus.OPEN):
        sharing.expire(share.pk)
    doubt.finish_all_of(checkout_uuid)


def _bring_nearer(merchant: Merchant, checkout_uuid: UUID, seconds: int) -> None:
    """Bring nearer what is still due; what has happened never moves. Raises OperationInProgress."""
    sooner = timedelta(seconds=seconds)
    with transaction.atomic():
        checkout = Checkout.objects.locked(checkout_uuid, merchant)
        if open_operations.open_operation(checkout.pk) is not None:
            raise OperationInProgress
        if checkout.status == Status.CREATED:
            checkout.payable_until -= sooner
            if checkout.expires_at is not None:
                checkout.expires_at -= sooner
        elif checkout.status == Status.AUTHORIZED and checkout.capture_before is not None:
            checkout.capture_before -= sooner
        checkout.touch(
            payable_until=checkout.payable_until,
            expires_at=checkout.expires_at,
            capture_before=checkout.capture_before,
        )
        links = checkout.payment_requests.filter(status__in=[ShareStatus.OPEN, ShareStatus.PAYING])
        links.update(expires_at=F("expires_at") - sooner, next_reminder_at=F("next_reminder_at") - sooner)
        payments = list(Payment.objects.filter(checkout_uuid=checkout.pk).values_list("pk", flat=True))
        due = Operation.objects.filter(payment__in=payments, ended_at=None, lease_token=None)
        due.update(next_attempt_at=F("next_attempt_at") - sooner)
        LeadTold.objects.filter(checkout=checkout, ended_at=None).update(due_at=F("due_at") - sooner)
        outbox.advance(checkout.pk, sooner)
    client.ask("advance", payments=payments, seconds=seconds)
