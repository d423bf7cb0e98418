"""Lets time pass for one checkout: all its times move earlier, and the pumps process its rows that become due.

Rule sandbox.advance.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Model, QuerySet

from checkout import expiry, mate_shares, operation_recovery
from checkout.models import ApiCall, Checkout, GroupLink, LeadNotification, PaymentRequest, Refund
from checkout.states import OperationInProgress, ShareStatus
from checkout.syncing import notifications, sync
from config.lib.database import queries
from config.lib.deadline import Deadline
from hosted_page import statements
from hosted_page.models import CardTry, SignInCode, SmsMessage
from payments import open_operations, operation_queue
from payments.models import Dispute, Inquiry, Merchant, Operation, Payment
from payments.provider import ProviderUnreachable
from payments.providers.sandbox import client
from webhooks import outbox

# The helper waits at most this long for operations that a worker has claimed.
WORKER_SECONDS = 5.0
ASK_AGAIN_SECONDS = 0.05
# The times that move: CHECKOUT_TIMES are in the checkout's own row, and RELATED_TIMES are in the other rows
# about it. `updated_at` is set to the current time.
CHECKOUT_TIMES = (
    *("created_at", "expires_at", "payable_until", "authorized_at", "capture_before", "captured_at"),
    *("voided_at", "expired_at", "last_refund_at"),
)
RELATED_TIMES: tuple[tuple[type[Model], str, tuple[str, ...]], ...] = (
    (
        PaymentRequest,
        "checkout",
        (
            "created_at",
            "expires_at",
            "paid_at",
            "ended_at",
            "next_reminder_at",
            "claimed_until",
            "replaced_at",
        ),
    ),
    (GroupLink, "checkout", ("created_at",)),
    (Refund, "checkout", ("created_at", "settled_at")),
    (LeadNotification, "checkout", ("due_at", "ended_at")),
    (ApiCall, "checkout_uuid", ("created_at",)),
    (Payment, "checkout_uuid", ("created_at", "synced_at", "abandoned_at")),
    (Dispute, "checkout_uuid", ("opened_at", "respond_by", "created_at", "closed_at")),
    (
        SmsMessage,
        "checkout_uuid",
        ("created_at", "due_at", "ends_at", "claimed_at", "sent_at", "ended_at"),
    ),
    (SignInCode, "subject__in", ("created_at", "expires_at", "used_at")),
    (CardTry, "subject__in", ("created_at",)),
    # PayerSignIn is left out, because a sign-in belongs to a person's visit, and the browser's cookie
    # contains some of its times.
)


def advance(merchant: Merchant, checkout_uuid: UUID, seconds: int) -> None:
    """Let `seconds` pass for a checkout. Raises Checkout.DoesNotExist, OperationInProgress."""
    Checkout.objects.only("pk").get(pk=checkout_uuid, merchant=merchant)
    # Finish the open operations first, because the times that they record must be moved too.
    operation_recovery.finish_due_operations(checkout_uuid)
    _move_all_times(merchant, checkout_uuid, seconds)
    receive_from_bank(checkout_uuid)
    expiry.expire_one_if_due(checkout_uuid)
    for share in PaymentRequest.objects.filter(checkout=checkout_uuid, status=ShareStatus.OPEN):
        mate_shares.expire(share.pk)
    _finish_operations(checkout_uuid)


def _finish_operations(checkout_uuid: UUID) -> None:
    """Finish all due operations of a checkout, and wait until workers have finished those that they have claimed.

    The bank's notification wakes the workers, so a worker can claim an operation first. Without the wait, the response
    would show the checkout as it was before the outcome.
    """
    patience = Deadline.after(WORKER_SECONDS)
    operation_recovery.finish_due_operations(checkout_uuid)
    while operation_queue.has_leased_operation(checkout_uuid) and patience.remaining():
        time.sleep(ASK_AGAIN_SECONDS)
        operation_recovery.finish_due_operations(checkout_uuid)


def _move_all_times(merchant: Merchant, checkout_uuid: UUID, seconds: int) -> None:
    """Move all times of a checkout earlier. Raises OperationInProgress."""
    duration = timedelta(seconds=seconds)
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid, merchant)
        _check_open(checkout)
        _move(Checkout.objects.filter(pk=checkout.pk), CHECKOUT_TIMES, duration)
        checkout.touch()
        _move_history(checkout, seconds)
        shares = PaymentRequest.every.filter(checkout=checkout)
        subjects = [checkout.pk, *shares.values_list("pk", flat=True)]
        values: dict[str, Any] = {"checkout": checkout, "checkout_uuid": checkout.pk, "subject__in": subjects}
        for model, field, names in RELATED_TIMES:
            _move(model._base_manager.filter(**{field: values[field]}), names, duration)
        payments = list(Payment.objects.filter(checkout_uuid=checkout.pk).values_list("pk", flat=True))
        operations = Operation.objects.filter(payment__in=payments)
        _move(operations, ("created_at", "first_sent_at", "last_sent_at", "ended_at"), duration)
        _move(operations.filter(ended_at=None, lease_token=None), ("next_attempt_at",), duration)
        outbox.advance(checkout.pk, duration)
    client.call_bank("advance", payments=payments, seconds=seconds)


def receive_from_bank(checkout_uuid: UUID) -> None:
    """Let the sandbox bank process the changes to a checkout's payments that are due, and record its notifications.

    Without this call, the changes and the notifications would wait until Celery beat starts the tasks.
    """
    payments = list(Payment.objects.filter(checkout_uuid=checkout_uuid).values_list("pk", flat=True))
    for notification in client.call_bank("tell", payments=payments):
        notifications.handle_notification(notification)
    for payment_uuid in Inquiry.objects.filter(payment__in=payments).values_list("payment", flat=True):
        # At this point, the times have already moved. If the bank cannot be reached, the pump queries it later.
        with suppress(ProviderUnreachable):
            sync.sync(payment_uuid)


def _check_open(checkout: Checkout) -> None:
    """Raise OperationInProgress if a card operation is open, unless it is a capture in doubt."""
    operation = open_operations.open_operation(checkout.pk)
    if operation is None:
        return
    is_in_doubt = operation.kind == Operation.Kind.CAPTURE and operation.state == Operation.State.UNKNOWN
    if not is_in_doubt or operation_queue.is_leased(operation, checkout.locked_at):
        raise OperationInProgress


def _move(rows: QuerySet[Any], names: Sequence[str], duration: timedelta) -> None:
    """Move these times of the rows earlier. Null values stay null."""
    rows.update(**{name: F(name) - duration for name in names})


def _move_history(checkout: Checkout, seconds: int) -> None:
    """Move the times of the history, the notes, the movements and the bookings earlier.

    The service can only append to these tables, so a database function moves the times.
    """
    queries.execute(statements.ADVANCE_HISTORY, [checkout.pk, seconds])
