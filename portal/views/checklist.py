"""The page of the integration checklist."""

from django.http import HttpRequest, HttpResponse

from portal import pages
from portal.access import requires
from portal.dashboard import checklist
from portal.models import Membership


@requires("view")
def ticked(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show what the integration has done so far, and what is left."""
    steps = checklist.of(membership.merchant)
    context = {"steps": steps, "done": sum(step.is_done for step in steps), "next": _next(steps)}
    return pages.show(request, membership, "portal/checklist.html", context, here="portal_checklist")


def _next(steps: list[checklist.Step]) -> checklist.Step | None:
    return next((step for step in steps if not step.is_done), None)
