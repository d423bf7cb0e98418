"""The menu page, the switch to another of a person's merchants, and the 404 page for signed-in people."""

from urllib.parse import urlsplit

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import Resolver404, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.defaults import page_not_found

from config.lib.web.error_pages import OPERATORS, PORTAL
from portal import access, pages
from portal.access import requires
from portal.models import Membership
from portal.orders import search


@requires("view")
def show_menu(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the menu and the person's merchants as a page, for phones without JavaScript.

    The page links back to the page from which it was opened, and marks that page in the menu.
    """
    mine = Membership.objects.filter(user=membership.user).select_related("merchant").order_by("created_at")
    back = _referring_page(request)
    # `aria-current` is "true" and not "page", because the marked entry is a different page.
    context = {"memberships": mine, "back": back, "mark": "true"}
    return pages.show_page(
        request, membership, "portal/menu.html", context, here=pages.menu_entry_of(urlsplit(back).path)
    )


@requires("view", form_of="portal_menu", chooses_merchant=True)
def switch_merchant(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Change to another of the person's merchants."""
    merchant_uuid = search.parse_uuid(request.POST.get("merchant", ""))
    chosen = get_object_or_404(Membership, user=membership.user, merchant=merchant_uuid)
    request.session[access.CHOSEN_MERCHANT_KEY] = str(chosen.merchant_id)
    return redirect("portal_home")


def _referring_page(request: HttpRequest) -> str:
    """Return the URL of the portal page that linked here. For any other page, return the home page's URL."""
    referrer = request.headers.get("Referer", "")
    origin = urlsplit(referrer) if url_has_allowed_host_and_scheme(referrer, {request.get_host()}) else None
    if origin is None or not _is_page(origin.path):
        return reverse("portal_home")
    return f"{origin.path}?{origin.query}" if origin.query else origin.path


def _is_page(path: str) -> bool:
    """Return whether the path is a portal page other than the menu."""
    try:
        return path.startswith(PORTAL) and resolve(path).url_name != "portal_menu"
    except Resolver404:
        return False


def show_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page for an unknown URL. Signed-in people see it in the portal's or the operators' frame."""
    if request.path.startswith(OPERATORS) and admin.site.has_permission(request):
        return render(request, "operators/missing.html", {"title": "No page at this address"}, status=404)
    membership = membership_for_frame(request) if request.path.startswith(PORTAL) else None
    if membership is None:
        return page_not_found(request, exception)
    response = pages.show_page(request, membership, "portal/missing.html", {})
    response.status_code = 404
    return response


def membership_for_frame(request: HttpRequest) -> Membership | None:
    """Return the person's membership, or None for people who are not signed in or may not enter the portal."""
    if not request.user.is_authenticated:
        return None
    membership = access.current_membership(request)
    return None if membership is None or access.must_set_up_second_factor(membership) else membership
