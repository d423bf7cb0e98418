"""Receives notifications from the provider (rule doubt.notification).

The service does not trust the content of a notification. It uses the content only to find the payment that it must
read from the provider.
"""

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from checkout.settling import FINISH_OPERATIONS
from config.lib import wakeup
from payments import operation_queue, provider, safe_answers
from payments.discrepancies import kinds, reporting
from payments.discrepancies.definitions import DiscrepancyKind
from payments.inquiring import inquiries
from payments.models import Operation, Payment
from payments.provider import ForgedNotification, Notification, Verdict

log = structlog.get_logger("checkout.syncing.notifications")
ANSWER_INQUIRIES = "checkout.tasks.answer_inquiries"
State = Operation.State
STATE_BY_VERDICT = {
    Verdict.SUCCEEDED: State.SUCCEEDED,
    Verdict.DECLINED: State.DECLINED,
    Verdict.FAILED: State.FAILED,
}


@csrf_exempt
@require_POST
def receive(request: HttpRequest) -> HttpResponse:
    """Accept a notification from the provider and respond with 204.

    The response is also 204 if the notification is a repetition or is about an unknown payment. It is 400 if the
    signature is wrong or the request cannot be parsed.
    """
    try:
        parsed = provider.current_provider().parse_notifications(request)
        notifications = list(safe_answers.safe_notifications(parsed))
    except ForgedNotification:
        return _refuse_notification(kinds.FORGED_NOTIFICATION, "The signature does not fit.")
    except (RequestDataTooBig, UnreadablePostError):
        raise
    except Exception as error:
        # If a notification causes an error, the response is 400, not 500, and the error is reported to the operators.
        log.warning("unreadable notification", error=type(error).__name__)
        return _refuse_notification(kinds.UNREADABLE_NOTIFICATION, "This cannot be read.")
    for notification in notifications:
        handle_notification(notification)
    return HttpResponse(status=204)


def _refuse_notification(kind: DiscrepancyKind, words: str) -> HttpResponse:
    reporting.report(kind, None)
    return HttpResponse(words, status=400, content_type="text/plain")


def handle_notification(notification: Notification) -> None:
    """Make the operation in a notification due now, or open an inquiry about its payment.

    If the result is already recorded, the notification is ignored. An unknown payment is reported.
    """
    log.info(
        "notification",
        id=notification.id,
        payment=str(notification.payment),
        kind=notification.kind,
        verdict=notification.verdict,
    )
    payment = Payment.objects.filter(pk=notification.payment).first()
    if payment is None:
        reporting.report(kinds.MISSING_HERE, notification.payment)
        return
    operation = _operation_of(payment, notification)
    if operation is not None and operation.state == STATE_BY_VERDICT.get(notification.verdict):
        return
    with transaction.atomic(durable=True):
        if operation is not None and operation.state in (*Operation.OPEN, State.PENDING):
            operation_queue.make_due(operation)
            wakeup.wake_after_commit(FINISH_OPERATIONS)
        else:
            inquiries.open_inquiries([payment.pk])
            wakeup.wake_after_commit(ANSWER_INQUIRIES)


def _operation_of(payment: Payment, notification: Notification) -> Operation | None:
    """Return the operation that a notification names, or else the last operation of the same kind on the payment.

    Returns None for a refund without an operation, because the service did not make it.
    """
    rows = payment.operations.filter(kind=notification.kind)
    if notification.operation is not None:
        return rows.filter(pk=notification.operation).first()
    return rows.order_by("created_at").last() if notification.kind != Operation.Kind.REFUND else None
