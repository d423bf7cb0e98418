"""The actions on operators' pages: run a pump, and look up an operation in doubt.

The admin's log records each action.
"""

from typing import cast
from uuid import UUID

import structlog
from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.decorators import permission_required
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from checkout.models import Checkout
from checkout.remedies import immediate_look_up
from checkout.remedies.admin import RESTORED_TEXT
from checkout.remedies.status_check import NotAllowed
from config.lib import locks
from config.lib.admin import columns
from config.lib.admin.readonly import FROM_PAGE
from payments import planning, restore_guard
from payments.models import Operation
from portal import last_writes
from portal.backoffice import pumps
from portal.models import User

log = structlog.get_logger("portal.backoffice")
RUN_PERMISSION = "payments.change_operation"
SENT_AGAIN = "The service sends it again."
REFUNDED_AGAIN = "The service refunds what the card is still owed."
BUSY = "A card operation is open. Try again in a moment."


@require_POST
@permission_required(RUN_PERMISSION, raise_exception=True)
def look_up(request: HttpRequest, key: UUID) -> HttpResponse:
    """Query the provider now about an operation in doubt, and show the result."""
    operation = get_object_or_404(Operation.objects.select_related("payment"), pk=key)
    checkout = Checkout.objects.get(pk=operation.payment.checkout_uuid)
    title = f"{operation.get_kind_display()}, {checkout.merchant_order_id}"
    try:
        _report_outcome(request, title, immediate_look_up.look_up_now(key))
    except NotAllowed as refusal:
        messages.warning(request, f"Not done. {refusal}")
    except restore_guard.ServiceClosed:
        messages.warning(request, f"Not done: {RESTORED_TEXT}")
    except OperationalError as error:
        if not locks.is_locked(error):
            raise
        messages.warning(request, BUSY)
    return HttpResponseRedirect(_address_of_start(request, key), status=303)


def _address_of_start(request: HttpRequest, key: UUID) -> str:
    """Return the page on which the look-up was started: the operation's page, or the page with all cases."""
    if FROM_PAGE in request.POST:
        return columns.page_address("payments.operation", key)
    return reverse("admin_operations")


def _report_outcome(request: HttpRequest, title: str, operation: Operation) -> None:
    """Show and log an operation's state. Only a success is shown in green."""
    if planning.was_replaced(operation):
        next_step = REFUNDED_AGAIN if operation.kind == Operation.Kind.REFUND else SENT_AGAIN
        log_action(
            request, f"Looked up at the provider: did not arrive. {next_step}".removesuffix("."), title
        )
        messages.info(request, f"Looked up at the provider. {title}: it did not arrive. {next_step}")
        return
    state = operation.get_state_display().lower()
    log_action(request, f"Looked up at the provider: {state}", title)
    level = messages.SUCCESS if operation.state == Operation.State.SUCCEEDED else messages.INFO
    result = f"{title}: {state}."
    if operation.state == Operation.State.UNKNOWN:
        result = f"The outcome of {title} is still unknown. The service tries again automatically."
    messages.add_message(request, level, f"Looked up at the provider. {result}")


@require_POST
@permission_required(RUN_PERMISSION, raise_exception=True)
def run_pump(request: HttpRequest) -> HttpResponse:
    """Run a pump in this request, and show how long it took.

    While the service is closed after a restore, the pump is not run, because it would have no effect.
    """
    name = request.POST.get("pump", "")
    if name not in pumps.TITLES:
        raise Http404
    title = pumps.TITLES[name]
    try:
        restore_guard.check()
        seconds = pumps.run(name)
    except restore_guard.ServiceClosed:
        messages.warning(request, f"Not done: {RESTORED_TEXT}")
    except Exception as error:
        _report_failure(request, name, title, error)
    else:
        _report_success(request, name, title, seconds)
    return HttpResponseRedirect(reverse("admin_operations"), status=303)


def _report_success(request: HttpRequest, name: str, title: str, seconds: float) -> None:
    log.info("pump run by hand", task=name, actor=f"user:{request.user.pk}", ms=round(seconds * 1000))
    log_action(request, f"Ran the task by hand in {seconds:.1f} s", title)
    messages.success(request, f"{title}: the task ran for {seconds:.1f} s.")


def _report_failure(request: HttpRequest, name: str, title: str, error: Exception) -> None:
    kind = type(error).__name__
    log.error("pump failed", task=name, actor=f"user:{request.user.pk}", exc_info=error)
    log_action(request, f"Ran the task by hand, and it failed: {kind}", title)
    messages.error(request, f"{title}: the task failed with {kind}. The log has the details.")


def log_action(request: HttpRequest, outcome: str, title: str) -> None:
    """Write an operator's action into the admin's log, in which Django also records changes to rows."""
    operator = cast(User, request.user)
    LogEntry.objects.create(
        user=operator, action_flag=CHANGE, object_repr=title[:200], change_message=f"{outcome}."
    )
    last_writes.record_write(last_writes.OPERATORS)
