"""The content security policy of each page, and the origins that a page allows in addition to our own.

Rule secret.csp.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from csp.constants import HEADER
from csp.utils import build_policy
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from config.lib.web import origins

ENDPOINTS = "Reporting-Endpoints"
_Origins = tuple[tuple[str, tuple[str, ...]], ...]


class PolicyMiddleware:
    """Middleware that sets each page's policy. Unlike django-csp's middleware, it caches policies."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        hooks = (getattr(response, hook, {}) for hook in ("_csp_update", "_csp_replace"))
        response.headers.setdefault(HEADER, _build_policy(*map(_make_hashable, hooks)))
        if endpoints := endpoints_header():
            response.headers[ENDPOINTS] = endpoints
        return response


def endpoints_header() -> str:
    """Return the header that lists the addresses to which `report-to` sends reports.

    Without https, return "", because browsers then accept no such address. Rule card_page.reports.
    """
    directives: dict[str, Any] = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    return ", ".join(f'{name}="{directives["report-uri"][0]}"' for name in directives["report-to"] or [])


def _make_hashable(origins_of: Mapping[str, Sequence[str]]) -> _Origins:
    return tuple((name, tuple(origins)) for name, origins in origins_of.items())


@lru_cache(1024)  # the policy of a page depends on the shop to which it can send the payer back
def _build_policy(update: _Origins, replace: _Origins) -> str:
    """Build the policy with sorted directives, because the order in the library differs between processes."""
    return "; ".join(sorted(build_policy(update=dict(update), replace=dict(replace)).split("; ")))


def allow_forms_to(response: HttpResponse, *urls: str) -> None:
    """Allow the page's forms to redirect to these URLs. Otherwise, Chromium blocks the redirect."""
    found = {origins.origin_of(url) for url in urls}
    allow(response, {"form-action": sorted(found - {""})})


def allow(response: HttpResponse, origins_of: Mapping[str, Sequence[str]]) -> None:
    """Add origins to this page's policy. The keys of `origins_of` are directives."""
    update = getattr(response, "_csp_update", {})  # the middleware reads this attribute
    response._csp_update = {**update, **origins_of}  # type: ignore[attr-defined]  # ours


def allow_framing(response: HttpResponse) -> None:
    """Allow pages from our own origin to show this page in a frame."""
    response._csp_replace = {"frame-ancestors": ["'self'"]}  # type: ignore[attr-defined]  # ours
    response["X-Frame-Options"] = "SAMEORIGIN"
