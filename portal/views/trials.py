"""The integration checklist: what real traffic has shown, and the cases that the sandbox runs (rules trial.*)."""

from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from portal import audit, pages
from portal.access import requires
from portal.models import Membership
from portal.trials import running, shown
from portal.trials.cases import CASES, Case
from portal.trials.running import CannotBegin, NoEndpoint

HERE = "portal_checklist"


@requires("view")
def ticked(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show what the integration has done so far, and what is left; in the sandbox also the cases that it runs."""
    progress = shown.of(membership.merchant)
    template = "portal/_cases.html" if pages.is_asked_for(request, "cases") else "portal/checklist.html"
    return pages.show(request, membership, template, {"progress": progress}, here=HERE)


@requires("change_webhooks", form_of=HERE)
def run(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Begin a case; one that runs already goes on."""
    case = CASES.get(request.POST.get("case", ""))
    if case is None or not settings.SANDBOX:
        raise Http404
    try:
        _begin(request, membership, case)
    except CannotBegin as refused:
        pages.refuse(request, str(refused))
        return redirect("portal_webhooks" if isinstance(refused, NoEndpoint) else HERE)
    return redirect(f"{reverse(HERE)}#case-{case.name}")


def _begin(request: HttpRequest, membership: Membership, case: Case) -> None:
    with transaction.atomic():
        begun = running.begin(membership.merchant, case, membership.user)
        if begun.is_new:
            audit.record(request, membership, "trial_begun", case=case.name, trial=str(begun.trial.pk))
