"""Cleans up the Cookie header, because the time to parse a value full of backslashes is quadratic."""

from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

LONGEST = 16 * 1024  # maximum characters of the header; most servers accept only half as many


class CookieMiddleware(MiddlewareMixin):
    """Middleware that removes backslashes from the header, because our own cookies never contain one.

    If the header is too long, it removes all cookies.
    """

    def process_request(self, request: HttpRequest) -> None:
        header = request.META.get("HTTP_COOKIE", "")
        if "\\" in header or len(header) > LONGEST:
            request.META["HTTP_COOKIE"] = header.replace("\\", "") if len(header) <= LONGEST else ""
