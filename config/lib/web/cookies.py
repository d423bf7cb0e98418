"""Cleans the Cookie header: its parser takes quadratic time for a value full of backslashes."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

LONGEST = 16 * 1024  # characters of the header; servers take half of that in one line


class CookieMiddleware:
    """Removes backslashes from the header, since no cookie of ours has any, and all cookies if it is too long."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        header = request.META.get("HTTP_COOKIE", "")
        if "\\" in header or len(header) > LONGEST:
            request.META["HTTP_COOKIE"] = header.replace("\\", "") if len(header) <= LONGEST else ""
        return self._get_response(request)
