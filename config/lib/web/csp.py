"""What a page's CSP allows besides our own origin (rule secret.csp)."""

from collections.abc import Mapping, Sequence

from django.http import HttpResponse

from config.lib.web import origins


def allow_forms_to(response: HttpResponse, *urls: str) -> None:
    """Allow the origins at which this page's forms end after a redirect: Chromium blocks any other."""
    found = {origins.of(url) for url in urls}
    allow(response, {"form-action": sorted(found - {""})})


def allow(response: HttpResponse, origins_of: Mapping[str, Sequence[str]]) -> None:
    """Allow these origins, by directive, on this page."""
    update = getattr(response, "_csp_update", {})  # django-csp's hook
    response._csp_update = {**update, **origins_of}  # type: ignore[attr-defined]  # its hook


def allow_framing(response: HttpResponse) -> None:
    """Allow our own pages, which are under the same policy, to show this one in a frame."""
    response._csp_replace = {"frame-ancestors": ["'self'"]}  # type: ignore[attr-defined]  # its hook
    response["X-Frame-Options"] = "SAMEORIGIN"
