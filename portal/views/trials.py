"""The integration checklist: what real traffic has completed, and the cases and orders that the sandbox makes.

Rules trial.*.
"""

from contextlib import suppress
from urllib.parse import urlencode

from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from payments.operator_stops import AllStopped, MerchantSuspended
from portal import access, audit, pages
from portal.access import requires
from portal.models import Membership
from portal.orders import search
from portal.pages import Question
from portal.trials import checklist_page, made_orders, trial_runs
from portal.trials.cases import CASES, Case
from portal.trials.made_orders import TooManyOrders
from portal.trials.trial_runs import CannotBegin, NoEndpoint
from webhooks import subscriptions
from webhooks.subscriptions import SubscriptionNotFound

HERE = "portal_checklist"
HOME = "portal_home"
OWN_ORDER = "own"  # with this value of `order` in the URL, the cases pay for the merchant's own order
ROTATE_QUESTION = Question(
    "Integration checklist",
    "Rotate the signing secret?",
    "You get a new secret, which is shown once. For two hours, both secrets sign, so no delivery fails. "
    "The sandbox then pays an order and sends an event that both secrets sign.",
    "Rotate and run it",
)
SEND_QUESTION = Question(
    "Integration checklist",
    "Send an event that two secrets sign?",
    "A rotation is in progress: two secrets already sign, so you get no new secret. The sandbox only sends the event.",
    "Run it",
)


@requires("view")
def show_checklist(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the steps of the integration and their state. In the sandbox, also show the cases."""
    progress = checklist_page.checklist_with_cases(
        membership.merchant, is_own=request.GET.get("order") == OWN_ORDER
    )
    if pages.is_part_requested(request, "cases"):
        return pages.show_page(request, membership, "portal/_cases.html", {"progress": progress}, here=HERE)
    context = {"progress": progress, "new_secret": pages.take_secret(request, membership, "signing")}
    return pages.show_page(request, membership, "portal/checklist.html", context, here=HERE)


@requires("change_webhooks", form_of=HERE)
def run_case(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Begin a case. If the form has `stop`, stop its run instead. A case that already runs continues."""
    case = CASES.get(request.POST.get("case", ""))
    if case is None or not settings.SANDBOX:
        raise Http404
    order = request.POST.get("order", "")
    if "stop" in request.POST:
        return _stop_case(request, membership, case)
    if case.begin_at:
        return redirect(f"{reverse(case.begin_at)}{_order_query(order)}")
    try:
        _begin_case(request, membership, case, order)
    except CannotBegin as refusal:
        return _show_refusal(request, refusal)
    return redirect(f"{reverse(HERE)}{_order_query(order and OWN_ORDER)}#case-{case.name}")


def _stop_case(request: HttpRequest, membership: Membership, case: Case) -> HttpResponse:
    with transaction.atomic(durable=True):
        if trial_runs.stop(membership.merchant, case):
            audit.record(request, membership, "trial_stopped", case=case.name)
    return redirect(f"{reverse(HERE)}#case-{case.name}")


def _order_query(order: str) -> str:
    return f"?{urlencode({'order': order})}" if order else ""


@requires("change_webhooks", sensitive=True)
def rotate_and_run(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Ask the person to confirm, then rotate the signing secret and begin the case "rotate".

    The old secret continues to sign for two hours.
    """
    case = CASES["rotate"]
    if not settings.SANDBOX:
        raise Http404
    if request.method != "POST":
        return pages.ask_question(request, membership, _rotate_question(membership), here=HERE)
    try:
        secret = _begin_with_rotation(request, membership, case)
    except CannotBegin as refusal:
        return _show_refusal(request, refusal)
    if secret:
        pages.store_secret(request, membership, "signing", secret)
    return redirect(f"{reverse(HERE)}#{'secret' if secret else 'case-rotate'}")


def _rotate_question(membership: Membership) -> Question:
    """Return the question before a rotation. If two secrets already sign, the question is only about the case."""
    with suppress(SubscriptionNotFound):
        if subscriptions.previous_secret_expiries(subscriptions.read_subscription(membership.merchant)):
            return SEND_QUESTION
    return ROTATE_QUESTION


def _begin_with_rotation(request: HttpRequest, membership: Membership, case: Case) -> str:
    """Begin the case, and rotate the secret unless two secrets already sign.

    Return the new secret, or "" if the secret was not rotated.
    """
    with transaction.atomic(durable=True):
        if not _begin_case(
            request, membership, case, request.GET.get("order", "")
        ) or subscriptions.previous_secret_expiries(subscriptions.read_subscription(membership.merchant)):
            return ""
        audit.record(request, membership, "secret_rotated")
        return subscriptions.rotate(membership.merchant).signing_secret


def _begin_case(request: HttpRequest, membership: Membership, case: Case, order: str) -> bool:
    """Begin a case, and record this in the audit log. Return whether the run is new. Raises CannotBegin."""
    order_uuid = search.parse_uuid(order)
    if order and order_uuid is None:
        raise CannotBegin("There is no such order. Choose one of your unpaid orders.")
    with transaction.atomic(savepoint=True):
        begun = trial_runs.begin(membership.merchant, case, membership.user, order_uuid)
        if begun.is_new:
            audit.record(request, membership, "trial_begun", case=case.name, trial=str(begun.trial.pk))
    return begun.is_new


def _show_refusal(request: HttpRequest, refusal: CannotBegin) -> HttpResponse:
    pages.report_refusal(request, str(refusal))
    return redirect("portal_webhooks" if isinstance(refusal, NoEndpoint) else HERE)


@requires("change_webhooks", form_of=HOME)
def make_order(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Make a test order, and redirect the person to the page on which a customer would pay for it."""
    if not settings.SANDBOX:
        raise Http404
    try:
        with transaction.atomic(durable=True):
            order = made_orders.make_order(membership.merchant, cause=access.cause(membership))
            audit.record(request, membership, "test_order_made", order=order.merchant_order_id)
    except TooManyOrders:
        maximum = made_orders.LIMIT.maximum
        pages.report_refusal(request, f"The limit of {maximum} test orders an hour is reached. Wait a while.")
        return redirect(HOME)
    except (MerchantSuspended, AllStopped):
        pages.report_refusal(request, "No order was made, because new payments are stopped.")
        return redirect(HOME)
    return redirect(order.url)
