"""The portal's menu as a page of its own, the choice between a person's merchants, and what is not there."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.defaults import page_not_found

from config.lib.web.error_pages import PORTAL
from portal import access, pages
from portal.access import requires
from portal.models import Membership
from portal.orders import search


@requires("view")
def menu(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the menu, for a phone without script, and the merchants that the person may act for."""
    mine = Membership.objects.filter(user=membership.user).select_related("merchant").order_by("created_at")
    return pages.show(request, membership, "portal/menu.html", {"memberships": mine}, here="portal_menu")


@requires("view", form_of="portal_menu")
def switch(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Act for another of the person's merchants."""
    wanted = search.parse_uuid(request.POST.get("merchant", ""))
    chosen = get_object_or_404(Membership, user=membership.user, merchant=wanted)
    request.session[access.CHOSEN] = str(chosen.merchant_id)
    return redirect("portal_home")


def missing(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page for an address with nothing at it: to whoever is signed in, within the portal."""
    membership = _inside(request)
    if membership is None:
        return page_not_found(request, exception)
    response = pages.show(request, membership, "portal/missing.html", {})
    response.status_code = 404
    return response


def _inside(request: HttpRequest) -> Membership | None:
    """Return the membership of somebody who is in the portal, None elsewhere and for strangers."""
    if not request.path.startswith(PORTAL) or not request.user.is_authenticated:
        return None
    membership = access.current(request)
    return None if membership is None or access.wants_second_factor(membership) else membership
