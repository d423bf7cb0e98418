"""The provider's notifications. None is believed: one that fits makes its operation due, so that the pump asks.

Rule doubt.notification.
"""

from typing import Any
from uuid import UUID

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from checkout.outside.disputing import ANSWER_INQUIRIES
from checkout.share_outcomes import FINISH_OPERATIONS
from config.lib import wakeup
from payments import discrepancies, due, provider, safe_answers
from payments.models import Operation, Payment
from payments.outside import acts, inquiries, returns
from payments.provider import ForgedNotification, Notification, Record, Verdict

log = structlog.get_logger("checkout.outside.notifications")
State = Operation.State
ENDS = {Verdict.SUCCEEDED: State.SUCCEEDED, Verdict.DECLINED: State.DECLINED, Verdict.FAILED: State.FAILED}


@csrf_exempt
@require_POST
def take(request: HttpRequest) -> HttpResponse:
    """Take a message of the provider: 204, also for a repeated one and for one that is about nothing of ours.

    400 for one that is not signed or not readable.
    """
    try:
        told = list(safe_answers.notifications(provider.current().parse_notifications(request)))
    except ForgedNotification:
        return _refused("forged_notification", "The signature does not fit.")
    except (RequestDataTooBig, UnreadablePostError):
        raise
    except Exception as error:  # never a 500, whatever came: a person looks into it
        log.warning("unreadable notification", error=type(error).__name__)
        return _refused("unreadable_notification", "This cannot be read.")
    for notification in told:
        hear_message(notification)
    return HttpResponse(status=204)


def _refused(discrepancy: str, words: str) -> HttpResponse:
    discrepancies.report(discrepancy, None)
    return HttpResponse(words, status=400, content_type="text/plain")


def hear_message(told: Notification) -> None:
    """Hear of a record or a dispute, whichever it is about."""
    if told.record is not None:
        log.info("notification", id=told.id, operation=str(told.record.key), verdict=told.record.verdict)
        hear(told.record)
    if told.disputed is not None:
        log.info("notification", id=told.id, disputed=str(told.disputed))
        hear_of_dispute(told.disputed)


def hear(record: Record) -> None:
    """Make the record's operation due now; report a record that contradicts ours, which changes nothing."""
    operation = Operation.objects.select_related("payment").filter(pk=record.key).first()
    if operation is None:
        _report_stranger(record)
        return
    contradiction = _contradiction(operation, record)
    if not contradiction and returns.is_told(operation, record.verdict):
        _inquire(operation.payment_id)
    elif contradiction:
        facts: dict[str, Any] = {
            "verdict": record.verdict,
            "amount": record.amount,
            "currency": record.currency,
        }
        discrepancies.report_operation(operation, contradiction, **facts)
    elif operation.ended_at is None:
        with transaction.atomic():
            due.make_due(operation)
            wakeup.after_commit(FINISH_OPERATIONS)


def _report_stranger(record: Record) -> None:
    """Report a record that we never asked for: made in the provider's own dashboard, or of no payment of ours."""
    if acts.booked([record]):
        return
    payments = acts.payments_of([record])
    kind = acts.kind_of(record, payments, otherwise="notification_of_nothing")
    is_ours = kind != "notification_of_nothing"
    facts = acts.facts_of(record, payments) if is_ours else {"payment": str(record.payment)}
    discrepancies.report(kind, record.key, merchant=record.account if is_ours else None, **facts)


def hear_of_dispute(payment_uuid: UUID) -> None:
    """Open an inquiry about a payment's disputes; report one that is no payment of ours."""
    if not Payment.objects.filter(pk=payment_uuid).exists():
        discrepancies.report("notification_of_nothing", payment_uuid, merchant=None)
        return
    _inquire(payment_uuid)


def _inquire(payment_uuid: UUID) -> None:
    with transaction.atomic():
        inquiries.open_about([payment_uuid])
        wakeup.after_commit(ANSWER_INQUIRIES)


def _contradiction(operation: Operation, record: Record) -> str:
    """Return how the record contradicts ours, as the kind of a discrepancy; "" if it does not."""
    payment = operation.payment
    if (record.account, record.payment) != (payment.merchant_id, payment.pk):
        return "notification_for_another_merchant"
    if (record.amount, record.currency) != (operation.amount, payment.currency):
        return "notification_of_another_amount"
    if operation.state == State.PLANNED and operation.attempts == 0:
        return "notification_before_the_call"
    if returns.has_come_back(operation, record.verdict):
        return ""
    said = ENDS.get(record.verdict, operation.state)
    if operation.ended_at is not None and said != operation.state and not operation.was_given_up:
        return "notification_contradicts"
    return ""
