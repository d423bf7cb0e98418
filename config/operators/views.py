"""The operators' pages: overview, search and operations, and the links that run pumps."""

from typing import Any, cast

import structlog
from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from config.lib import clock
from config.operators import board, finding, pumps, shell
from portal.models import User

log = structlog.get_logger("config.operators")
MAY_LOOK, MAY_RUN = "payments.view_operation", "payments.change_operation"


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """Show the search, what needs a person, and links to all records; the current state is loaded apart."""
    return _page(request, "overview", {"title": "Overview", "records": shell.records(request)})


@require_safe
@permission_required(MAY_LOOK, raise_exception=True)
def now(request: HttpRequest) -> HttpResponse:
    """Show the current state, as a part of the overview."""
    return TemplateResponse(request, "operators/_now.html", {"board": board.read()})


@require_safe
@permission_required(MAY_LOOK, raise_exception=True)
def operations(request: HttpRequest) -> HttpResponse:
    """Show what is in doubt, what needs a person, what waits, what was stopped, and the pumps."""
    shown = board.read(request)
    tasks = {queue.task for queue in shown.queues}
    more = {name: title for name, title in pumps.TITLES.items() if name not in tasks}
    may_run = request.user.has_perm(MAY_RUN)
    context = {"title": "Operations", "board": shown, "more_pumps": more, "may_run": may_run}
    return _page(request, "operations", context)


@require_safe
@permission_required(shell.MAY_FIND, raise_exception=True)
def find(request: HttpRequest) -> HttpResponse:
    """Show the orders that match what was typed; if there is only one, go to it."""
    term = request.GET.get("q", "")
    found = finding.find(term)
    if found.is_number:
        _keep(
            request,
            f"Looked for it, and found {len(found.orders)} orders",
            f"number ending {term.strip()[-4:]}",
        )
    if len(found.orders) == 1 and not found.merchants:
        return HttpResponseRedirect(
            reverse("admin:checkout_checkout_change", args=[found.orders[0].checkout.pk])
        )
    return _page(request, "find", {"title": "Search", "term": term, "found": found})


def _page(request: HttpRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    if "board" in context:
        at, unresolved, cases = context["board"].at, context["board"].unresolved, context["board"].cases
    else:
        at = clock.now()
        unresolved, cases = board.waiting(at, request) if request.user.has_perm(MAY_LOOK) else ([], [])
    around = shell.around_page(request, len(unresolved), len(cases)) | {"at": at, "cases": cases}
    return TemplateResponse(request, f"operators/{name}.html", around | context)


@require_POST
@permission_required(MAY_RUN, raise_exception=True)
def run_pump(request: HttpRequest) -> HttpResponse:
    """Run a pump in this request, and say how long it took."""
    name = request.POST.get("pump", "")
    if name not in pumps.TITLES:
        raise Http404
    title = pumps.TITLES[name]
    try:
        seconds = pumps.run(name)
    except Exception as error:
        _tell_failure(request, name, title, error)
    else:
        _tell_success(request, name, title, seconds)
    return HttpResponseRedirect(reverse("admin_operations"), status=303)


def _tell_success(request: HttpRequest, name: str, title: str, seconds: float) -> None:
    log.info("pump run by hand", task=name, actor=f"user:{request.user.pk}", ms=round(seconds * 1000))
    _keep(request, f"Ran it by hand in {seconds:.1f} s", title)
    messages.success(request, f"{title}: it ran for {seconds:.1f} s.")


def _tell_failure(request: HttpRequest, name: str, title: str, error: Exception) -> None:
    kind = type(error).__name__
    log.error("pump failed", task=name, actor=f"user:{request.user.pk}", exc_info=error)
    _keep(request, f"Ran it by hand, and it failed: {kind}", title)
    messages.error(request, f"{title}: it failed with {kind}. The log says more.")


def _keep(request: HttpRequest, happened: str, title: str) -> None:
    """Write what an operator did into the admin's log, beside what operators change."""
    operator = cast(User, request.user)
    LogEntry.objects.create(
        user=operator, action_flag=CHANGE, object_repr=title[:200], change_message=f"{happened}."
    )
