"""The operators' pages: the overview, the search, the operations, and the question that confirms an action."""

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_safe
from django_htmx.middleware import HtmxDetails

from config.lib import clock
from config.lib.admin import columns, confirmation
from config.lib.database import replica
from payments.models import Discrepancy, Operation
from portal.backoffice import cases, frame, operator_actions, overview_figures, pumps, search
from portal.backoffice.operator_actions import RUN_PERMISSION
from portal.backoffice.search import SearchResults

VIEW_PERMISSION = "payments.view_operation"


@replica.readable
@require_safe
def show_overview(request: HttpRequest) -> HttpResponse:
    """Show the search, the open cases, and links to all records.

    The page then makes a second request to load the current state (`now`).
    """
    return _render_page(request, "overview", {"title": "Overview"})


@replica.readable
@require_safe
@permission_required(VIEW_PERMISSION, raise_exception=True)
def show_current_state(request: HttpRequest) -> HttpResponse:
    """Show the part of the overview with the current state."""
    return TemplateResponse(request, "operators/_now.html", {"board": overview_figures.read_board()})


@replica.readable
@require_safe
@permission_required(VIEW_PERMISSION, raise_exception=True)
def show_operations(request: HttpRequest) -> HttpResponse:
    """Show the operations in doubt, the cases for a person, the queues, the stops and the pumps."""
    board = overview_figures.read_board(request)
    tasks = {queue.task for queue in board.queues}
    more_pumps = {name: title for name, title in pumps.TITLES.items() if name not in tasks}
    may_run = request.user.has_perm(RUN_PERMISSION)
    context = {"title": "Operations", "board": board, "more_pumps": more_pumps, "may_run": may_run}
    if is_part(request):
        return TemplateResponse(request, "operators/_board.html", context | {"at": board.at, "is_live": True})
    return _render_page(request, "operations", context)


@require_safe
@permission_required(VIEW_PERMISSION, raise_exception=True)
def ask_question(request: HttpRequest, action: str, key: UUID) -> HttpResponse:
    """Ask the operator to confirm an action on one row.

    If htmx requests the question, it is shown below the row. Otherwise, it is shown on a separate page.
    """
    row = _row_of_action(action, key)
    asked_question = _question_about(request, action, row)
    context = {
        "asked_question": asked_question,
        "action": action,
        "row": row,
        "rows": [row],
        "address": columns.list_address(row._meta.label_lower),
    }
    if is_part(request):
        return TemplateResponse(request, "operators/_question.html", context)
    return _render_page(request, "question", context | {"title": asked_question.question.title})


def _question_about(request: HttpRequest, action: str, row: Operation | Discrepancy) -> Any:
    """Return the question that confirms an action on a row.

    Raises Http404 if the action does not fit the row, or the operator may not take it.
    """
    if action not in cases.BUTTON_LABELS:
        raise Http404
    asked_question = confirmation.question_about(cases.admin_of(row), request, action, row)
    if asked_question is None:
        raise Http404
    return asked_question


def _row_of_action(action: str, key: UUID) -> Operation | Discrepancy:
    if action in cases.DISCREPANCY_ACTIONS:
        return get_object_or_404(Discrepancy, pk=key)
    return get_object_or_404(Operation, pk=key)


def is_part(request: HttpRequest) -> bool:
    """Return whether htmx requests only a part of a page."""
    htmx: HtmxDetails = request.htmx  # type: ignore[attr-defined]  # set by its middleware
    return bool(htmx) and not htmx.history_restore_request


@replica.readable
@require_safe
@permission_required(frame.SEARCH_PERMISSIONS, raise_exception=True)
def show_search(request: HttpRequest) -> HttpResponse:
    """Show the orders and merchants that match a term. If only one order matches, redirect to its page."""
    term = request.GET.get("q", "")
    results = search.find_rows(term, request)
    response = _show_results(request, term, results)
    if results.is_number:
        with replica.use_primary():
            operator_actions.log_action(
                request,
                f"Found {len(results.orders)} {'order' if len(results.orders) == 1 else 'orders'}",
                f"Search for a number ending {term.strip()[-4:]}",
            )
    return response


def _show_results(request: HttpRequest, term: str, results: SearchResults) -> HttpResponse:
    if len(results.orders) == 1 and not results.merchants:
        return HttpResponseRedirect(
            reverse("admin:checkout_checkout_change", args=[results.orders[0].checkout.pk])
        )
    return _render_page(request, "find", {"title": "Search", "term": term, "results": results}).render()


def _render_page(request: HttpRequest, name: str, context: dict[str, Any]) -> TemplateResponse:
    if "board" in context:
        at, unresolved, waiting = context["board"].at, context["board"].unresolved, context["board"].cases
    else:
        at, may_look = clock.now(), request.user.has_perm(VIEW_PERMISSION)
        unresolved, waiting = overview_figures.waiting_rows(at, request) if may_look else ([], [])
    counts = len(unresolved), len(waiting)
    page_context = frame.frame_context(request, *counts) | {"at": at}
    if name == "overview":
        page_context["cases"] = cases.cases_in_full(waiting, request)
        page_context["lists"] = cases.list_links(waiting, page_context["cases"])
        disputes = sum(case.is_decided_elsewhere for case in waiting)
        page_context["stop"] = overview_figures.stop_of_all(request)
        page_context["records"] = frame.record_links(request, *counts, disputes)
    return TemplateResponse(request, f"operators/{name}.html", page_context | context)
