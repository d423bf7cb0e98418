"""Cleans the Cookie header: its parser takes quadratic time for a value full of backslashes."""

from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

LONGEST = 16 * 1024  # characters of the header; servers take half of that in one line


class CookieMiddleware(MiddlewareMixin):
    """Removes backslashes from the header, since no cookie of ours has any, and all cookies if it is too long."""

    def process_request(self, request: HttpRequest) -> None:
        header = request.META.get("HTTP_COOKIE", "")
        if "\\" in header or len(header) > LONGEST:
            request.META["HTTP_COOKIE"] = header.replace("\\", "") if len(header) <= LONGEST else ""
