"""The page for a person who opens an address that only accepts a form, for example after a reload."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from config.lib.web import paths
from config.lib.web.error_pages import ACCOUNTS, OPERATORS, PORTAL
from config.lib.web.paths import PAYER_PREFIXES
from portal import pages
from portal.views import frame


class FormAddressMiddleware(MiddlewareMixin):
    """Middleware that replaces the empty response to a GET of a form's address by a page that leads to the form.

    The status stays 405. Addresses for programs keep their empty response.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Return the page if a person has opened a form's address, otherwise the response."""
        if not (isinstance(response, HttpResponseNotAllowed) and _is_opened(request, response)):
            return response
        page = _page_for(request)
        page.status_code, page["Allow"] = response.status_code, response["Allow"]
        return page


def _is_opened(request: HttpRequest, response: HttpResponse) -> bool:
    is_for_people = request.path.startswith((*PAYER_PREFIXES, PORTAL, ACCOUNTS, OPERATORS))
    return is_for_people and request.method == "GET" and "GET" not in response["Allow"]


def _page_for(request: HttpRequest) -> HttpResponse:
    """Return the page in the frame of the portal or of the operators if the person is signed in there."""
    if request.path.startswith(PAYER_PREFIXES):
        return render(request, "405.html", {"page_url": paths.payer_page(request)})
    if request.path.startswith(OPERATORS) and admin.site.has_permission(request):
        return render(request, "operators/form_address.html", {"title": "This address only takes a form"})
    membership = frame.membership_for_frame(request)
    if membership is None:
        return render(request, "405.html", {"page_url": ""})
    return pages.show_page(request, membership, "portal/form_address.html", {})
