"""The portal's menu as a page of its own, and the choice between a person's merchants."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

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
