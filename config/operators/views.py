"""The page of the operators' overview, and its buttons that run pumps."""

from typing import cast

import structlog
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from config.operators import board, pumps
from portal.models import User

log = structlog.get_logger("config.operators")
MAY_LOOK, MAY_RUN = "payments.view_operation", "payments.change_operation"


@require_safe
@permission_required(MAY_LOOK, raise_exception=True)
def operations(request: HttpRequest) -> HttpResponse:
    """Show what is in doubt, what is late, what was stopped, and the pumps."""
    context = {
        **admin.site.each_context(request),
        "title": "Operations",
        "board": board.read(),
        "pumps": pumps.TITLES,
        "may_run": request.user.has_perm(MAY_RUN),
    }
    return TemplateResponse(request, "admin/operations.html", context)


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
