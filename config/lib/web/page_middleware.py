"""Lets requests past the middlewares that they do not need.

Calls of the API need nothing of pages: files, policies, language, sessions, forms. A read cost a tenth more with them.
What a call still needs is done here: its host is one of ours, its answer has a length. The payer's pages need nothing
of the portal's: no session, no user, no messages.
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
    """Hands a call of the API straight to its view; everything else goes on through the middlewares of pages.

    Django builds the last of the list first, so `views` has said by then where they are.
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
    """Hands a request for a payer's page straight to its view; all others go on through the portal's middlewares."""

    def __init__(self, get_response: Handler) -> None:
        self._portal, self._page = get_response, _views[-1]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_payers = request.path_info.startswith(PAYERS)
        return self._page(request) if is_payers else self._portal(request)


def views(get_response: Handler) -> Handler:
    """Tell the two above where the views are: the last of the list, which Django leaves out again."""
    _views.append(get_response)
    raise MiddlewareNotUsed
