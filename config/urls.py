"""All URLs of the service, and the path converters that they use."""

import functools
import re
from collections.abc import Iterable, Iterator
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import (
    Resolver404,
    URLPattern,
    URLResolver,
    include,
    path,
    re_path,
    register_converter,
    resolve,
)
from django.urls.converters import StringConverter
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import RedirectView

from checkout.syncing import notifications
from config import errors
from config.lib.api import spelling
from config.lib.web import security_txt
from config.openapi import event_schemas, schema
from payments import provider
from portal import front_page
from portal.backoffice import operator_actions
from portal.backoffice import views as operators
from portal.developer_docs import downloads
from portal.developer_docs import views as documentation
from portal.oauth import metadata, revocation, token
from webhooks.api import source_addresses

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class ApiUuid:
    """Path converter that accepts any segment. It turns an invalid UUID into the nil UUID, which no row has.

    The API therefore returns the same error for a malformed id as for an unknown id.
    """

    regex = "[^/]+"

    def to_python(self, value: str) -> UUID:
        return UUID(value) if _UUID.fullmatch(value) else UUID(int=0)

    def to_url(self, value: UUID) -> str:
        return str(value)


class DownloadName(StringConverter):
    """Path converter for the name of a file that the documentation offers for download. No other name matches."""

    regex = "|".join(name.replace(".", r"\.") for name in downloads.FILES)


register_converter(ApiUuid, "api_uuid")
register_converter(DownloadName, "download_name")
register_converter(event_schemas.EventTypeConverter, "event_type")


_MERCHANT_API = "/api/merchant/v1/"
_ONLY_A_BEGINNING = re.compile(r"(/api)?(/merchant)?(/v[0-9]+)?")
# Matches the beginning of an API address. A caller can leave out each part of it, or get it wrong.
_BEGINNING = re.compile(r"/*(?:(?:api|merchant|sandbox|oauth2?|v[0-9]+)(?:/+|$))*")
_NAME_OF_A_PAGE = re.compile(r"<(?!api_uuid:)")
_LONGEST_ADDRESS = 200
# The first segments of paths that have no page. A caller who requests such a path probably wants the API.
MEANT_FOR_API = (
    *("api", "oauth", "oauth2", "token", "merchant", "sandbox", "checkouts", "webhooks", "events"),
    *("checkout", "webhook", "event", "v1", "v2"),
)


def similar_address(address: str) -> str:
    """Return the API address that a caller probably meant, or "" if there is none.

    The function corrects a wrong version, a wrong beginning, a slash at the end, and typing errors such as
    `checkout` for `checkouts`. Rule api.not_found.
    """
    if len(address) > _LONGEST_ADDRESS:
        return ""
    found = address.rstrip("/")
    if found != address and _exists(found):
        return found
    beginning, rest = _split_address(found)
    routes = _api_routes()
    for start in sorted(routes, key=lambda start: ("sandbox" in start) != ("sandbox" in beginning)):
        path = spelling.similar_path(rest, routes[start])
        if path and (meant := f"/{start}{'/'.join(path)}") != address:
            return meant
    return ""


def _exists(address: str) -> bool:
    try:
        return resolve(address).func is not api_not_found
    except Resolver404:
        return False


def _split_address(address: str) -> tuple[str, list[str]]:
    """Return the beginning of an address, such as `/api/v1/`, and the segments that follow it."""
    start = _BEGINNING.match(address)
    length = start.end() if start else 0
    return address[:length], address[length:].split("/")


@functools.cache
def _api_routes() -> dict[str, list[list[str]]]:
    """Return the segments of the API's routes, grouped by the beginning of the route.

    Leave out the routes of the documentation's pages and files, because their `<name>` would match any word.
    """
    routes: dict[str, list[list[str]]] = {}
    for route in _list_routes(urlpatterns):
        if route.startswith(("api/", "oauth/")) and not _NAME_OF_A_PAGE.search(route):
            beginning, rest = _split_address(route)
            routes.setdefault(beginning, []).append(rest)
    return routes


def _list_routes(patterns: Iterable[URLPattern | URLResolver], beginning: str = "") -> Iterator[str]:
    for pattern in patterns:
        route = f"{beginning}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            yield from _list_routes(pattern.url_patterns, route)
        else:
            yield route


@csrf_exempt  # a POST without a CSRF token must get the same answer as a GET
def api_not_found(request: HttpRequest) -> HttpResponse:
    similar = similar_address(request.path)
    message = f"No such address. Did you mean {similar}?" if similar else ""
    if _ONLY_A_BEGINNING.fullmatch(request.path.rstrip("/")):
        message = f"No such address. The calls of the API begin with {_MERCHANT_API}, as in {_MERCHANT_API}checkouts."
    return errors.json_error_response("not_found", message=message)


_WITH_REFERENCE = {"read_reference": schema.reference}
merchant_api = [
    path("", include("checkout.api.urls")),
    path("", include("webhooks.api.urls")),
    path("", include("hosted_page.opt_in.urls")),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", front_page.show_front_page, name="front"),
    # Browsers request this icon when they show a JSON response, because JSON cannot name another icon.
    path("favicon.ico", RedirectView.as_view(url="/static/img/favicon.svg", permanent=True)),
    path(".well-known/security.txt", security_txt.security_txt, name="security_txt"),
    path("security", security_txt.policy, name="security_policy"),
    path("oauth/token", token.issue_token, name="oauth_token"),
    path("oauth/revoke", revocation.revoke, name="oauth_revoke"),
    path(".well-known/oauth-authorization-server", metadata.show_metadata),
    path("api/schema", schema.api_schema, name="api_schema"),
    path("llms.txt", documentation.show_llms_text, _WITH_REFERENCE, name="llms_text"),
    path("api/docs", documentation.show_documentation, _WITH_REFERENCE, name="api_docs"),
    path("api/docs.md", documentation.show_whole_text, _WITH_REFERENCE, name="api_docs_whole"),
    path(
        "api/docs/<slug:name>.md",
        documentation.show_markdown_page,
        _WITH_REFERENCE,
        name="api_docs_markdown",
    ),
    path(
        "api/schema/events/<event_type:event_type>.json",
        event_schemas.serve_event_schema,
        name="api_event_schema",
    ),
    path(
        "api/delivery-addresses.json", source_addresses.serve_source_addresses, name="api_delivery_addresses"
    ),
    path("api/docs/<download_name:name>", downloads.download, name="api_docs_file"),
    path("api/merchant/v1/", include(merchant_api)),
    path("provider/notifications", notifications.receive, name="provider_notifications"),
    path("", include("hosted_page.urls")),
    path("", include("portal.urls")),
    path("portal/", RedirectView.as_view(pattern_name="portal_home")),
    path("admin", RedirectView.as_view(url="/admin/", permanent=False)),
    path("admin/", admin.site.admin_view(operators.show_overview)),
    path("admin/find", admin.site.admin_view(operators.show_search), name="admin_find"),
    path("admin/now", admin.site.admin_view(operators.show_current_state), name="admin_now"),
    path("admin/operations/", admin.site.admin_view(operators.show_operations), name="admin_operations"),
    path("admin/operations/run", admin.site.admin_view(operator_actions.run_pump), name="admin_run_pump"),
    path(
        "admin/operations/<uuid:key>/look-up",
        admin.site.admin_view(operator_actions.look_up),
        name="admin_look_up",
    ),
    path(
        "admin/operations/ask/<str:action>/<uuid:key>",
        admin.site.admin_view(operators.ask_question),
        name="admin_ask",
    ),
    path("admin/", admin.site.urls),
]
if provider.current_provider().urls:
    urlpatterns += [path("", include(provider.current_provider().urls))]
if settings.SANDBOX:  # rule sandbox.absent
    urlpatterns += [path("api/sandbox/v1/", include("hosted_page.sandbox.urls"))]
if settings.LOCAL:
    urlpatterns += [path("mail", include("config.local.mailbox"))]
urlpatterns += [path(name, api_not_found) for name in MEANT_FOR_API]
urlpatterns += [re_path(rf"^(?:{'|'.join(MEANT_FOR_API)})/", api_not_found)]
handler403 = "config.lib.web.error_pages.show_refusal"
handler404 = "portal.views.frame.show_not_found"
handler500 = "config.lib.web.error_pages.show_internal_error"
