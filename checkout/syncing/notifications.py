"""The provider's notifications (rule doubt.notification).

The service does not rely on what a notification says. It only uses it to decide what to ask the provider
about.
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
ENDS = {Verdict.SUCCEEDED: State.SUCCEEDED, Verdict.DECLINED: State.DECLINED, Verdict.FAILED: State.FAILED}


@csrf_exempt
@require_POST
def receive(request: HttpRequest) -> HttpResponse:
    """Accept a message of the provider and answer 204.

    A repeated message, and a message about a payment that is not ours, get 204 too. A message that is not
    signed or cannot be read gets 400.
    """
    try:
        told = list(safe_answers.notifications(provider.current_provider().parse_notifications(request)))
    except ForgedNotification:
        return _refuse_notification(kinds.FORGED_NOTIFICATION, "The signature does not fit.")
    except (RequestDataTooBig, UnreadablePostError):
        raise
    except Exception as error:  # never a 500: an operator looks into it
        log.warning("unreadable notification", error=type(error).__name__)
        return _refuse_notification(kinds.UNREADABLE_NOTIFICATION, "This cannot be read.")
    for notification in told:
        hear_message(notification)
    return HttpResponse(status=204)


def _refuse_notification(kind: DiscrepancyKind, words: str) -> HttpResponse:
    reporting.report(kind, None)
    return HttpResponse(words, status=400, content_type="text/plain")


def hear_message(told: Notification) -> None:
    """Make the operation that a notification is about due now, or have the payment's books read.

    If the result is known already, the notification is ignored.
    """
    log.info("notification", id=told.id, payment=str(told.payment), kind=told.kind, verdict=told.verdict)
    payment = Payment.objects.filter(pk=told.payment).first()
    if payment is None:
        reporting.report(kinds.MISSING_HERE, told.payment)
        return
    operation = _operation_of(payment, told)
    if operation is not None and operation.state == ENDS.get(told.verdict):
        return
    with transaction.atomic(durable=True):
        if operation is not None and operation.state in (*Operation.OPEN, State.PENDING):
            operation_queue.make_due(operation)
            wakeup.after_commit(FINISH_OPERATIONS)
        else:
            inquiries.open_about([payment.pk])
            wakeup.after_commit(ANSWER_INQUIRIES)


def _operation_of(payment: Payment, told: Notification) -> Operation | None:
    """Return our operation that a notification names, or else our last one of its kind.

    Returns None for a refund by others.
    """
    rows = payment.operations.filter(kind=told.kind)
    if told.operation is not None:
        return rows.filter(pk=told.operation).first()
    return rows.order_by("created_at").last() if told.kind != Operation.Kind.REFUND else None
