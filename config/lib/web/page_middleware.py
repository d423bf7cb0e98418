"""Middlewares that let requests skip the other middlewares that they do not need.

API calls need none of the middlewares for pages: static files, policies, language, sessions, forms. With
them, a read cost a tenth more. This module does what a call still needs: it checks the host, and sets the
response's length. Payers' pages need none of the portal's middlewares: no session, no user, no messages.
"""

from collections.abc import Callable

from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse

from config.lib.web import bodies

CALLS = ("/api/merchant/", "/api/sandbox/", *bodies.OAUTH)
PAYERS = ("/pay", "/bank/card/", "/bank/challenge/")
Handler = Callable[[HttpRequest], HttpResponse]
_views: list[Handler] = []


class CallMiddleware:
    """Middleware that passes API calls directly to their views. Other requests pass the pages' middlewares.

    Django builds the last middleware of the list first, so `views` has already stored the views.
    """

    def __init__(self, get_response: Handler) -> None:
        self._page, self._call = get_response, _views.pop()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(CALLS):
            return self._page(request)
        request.get_host()  # raises DisallowedHost
        response = self._call(request)
        response.headers.setdefault("Content-Length", str(len(response.content)))
        return response


class PayerMiddleware:
    """Middleware that passes requests for payers' pages directly to their views.

    Other requests pass the portal's middlewares.
    """

    def __init__(self, get_response: Handler) -> None:
        self._portal, self._page = get_response, _views[-1]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_payers = request.path_info.startswith(PAYERS)
        return self._page(request) if is_payers else self._portal(request)


def views(get_response: Handler) -> Handler:
    """Store the views for the two middlewares above, as the last of the list. Django leaves it out again."""
    _views.append(get_response)
    raise MiddlewareNotUsed
