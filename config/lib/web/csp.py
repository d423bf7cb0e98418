"""The CSP's form-action: the origins where a page's forms may lead (rule secret.csp)."""

from django.http import HttpResponse

from config.lib.web import origins


def allow_forms_to(response: HttpResponse, *urls: str) -> None:
    """Allow the origins at which this page's forms end after a redirect: Chromium blocks any other."""
    found = {origins.of(url) for url in urls}
    response._csp_update = {"form-action": sorted(found - {""})}  # type: ignore[attr-defined]  # django-csp's hook
