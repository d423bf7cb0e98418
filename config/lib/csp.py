"""Where a page's forms may lead."""

from urllib.parse import urlsplit

from django.http import HttpResponse


def allow_forms_to(response: HttpResponse, *urls: str) -> None:
    """Name the origins that this page's forms end at after a redirect: Chromium blocks any other."""
    origins = {f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, urls) if parts.netloc}
    response._csp_update = {"form-action": sorted(origins)}  # type: ignore[attr-defined]  # django-csp's hook
