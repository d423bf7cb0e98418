"""Lists all routes of the URL resolver, and sends requests to them without a login."""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.http.request import HttpHeaders
from django.test import RequestFactory
from django.test.client import ClientHandler
from django.urls import URLPattern, URLResolver, get_resolver, resolve

from config.lib.web.bodies import CountedBodies

TOKEN = "a" * 32  # CSRF token, sent as cookie and as header, so that a POST passes the CSRF check
LOGINS = ("/accounts/login/", "/admin/login/")
NOT_ALLOWED = 405
# Values for the variable parts of a path, keyed by converter. No row has these values.
ANY = {"uuid": "00000000-0000-0000-0000-000000000000", "str": "x", "path": "x", "int": "1", "slug": "x"}
ANY["api_uuid"] = ANY["uuid"]
ANY["download_name"] = "listen.py"
ANY["event_type"] = "checkout.voided"


def below(patterns: list[Any], before: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Yield the full route and the pattern of each URL pattern, including those of included URLconfs."""
    for pattern in patterns:
        route = before + str(pattern.pattern).removeprefix("^")
        if isinstance(pattern, URLResolver):
            yield from below(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            yield route, pattern


def routes() -> list[str]:
    """Return every route of the service, without duplicates."""
    return list(dict.fromkeys(route for route, _ in below(get_resolver().url_patterns)))


def path(route: str, known: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a path for a route. `known` maps route prefixes to the paths of existing objects."""
    begun = next((known[part] + route.removeprefix(part) for part in known if route.startswith(part)), route)
    # Keep only the first of several alternatives in a group.
    plain = re.sub(r"\(\?(?:P<\w+>|:)(\w+)\|[^)]*\)", r"\1", begun)
    plain = re.sub(r"\(\?P<\w+>[^)]*\)", "1", plain)
    found = "/" + re.sub(r"<(\w+):\w+>", lambda part: ANY[part[1]], plain.removesuffix("$"))
    assert resolve(found).route.removeprefix("^") == route, f"Say what leads to {route}."
    return found


@functools.cache
def _application() -> CountedBodies:
    handler: Any = ClientHandler(enforce_csrf_checks=True)
    handler.load_middleware()
    return CountedBodies(
        lambda environ, _: handler(environ),
        largest=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        larger={settings.LOGO_PATH: settings.LARGEST_UPLOAD},
    )


def asking(method: str, path: str, body: str = "", **headers: str) -> Callable[[], Any]:
    """Return a function that sends the request and returns the response. Call the function at most once.

    The UTF-8 bytes of each header value are decoded as Latin-1, because a WSGI server does the same.
    """
    sent = {"Cookie": f"csrftoken={TOKEN}", "X-CSRFToken": TOKEN} | headers
    environ = RequestFactory().generic(method, path, body).environ
    named = {HttpHeaders.to_wsgi_name(name): value.encode().decode("latin-1") for name, value in sent.items()}
    return functools.partial(_application(), environ | named, lambda *_: None)


def answer(path: str) -> Any:
    """Return the response to a POST without a login, or to a GET if the path does not accept a POST."""
    posted = asking("POST", path)()
    return asking("GET", path)() if posted.status_code == NOT_ALLOWED else posted


def needs_a_login(path: str) -> bool:
    """Return whether the address needs a login.

    Without a login, such an address redirects to the login page or returns 401.
    """
    answered = answer(path)
    return answered.status_code == 401 or answered.headers.get("Location", "").partition("?")[0] in LOGINS
