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
    upcoming = next((step for step in steps if not step.is_done), None)
    context = {"steps": steps, "done": sum(step.is_done for step in steps), "next": upcoming}
    return pages.show(request, membership, "portal/checklist.html", context, here="portal_checklist")
