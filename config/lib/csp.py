"""Where a page's forms may lead."""

from urllib.parse import urlsplit

from django.http import HttpResponse


def allow_forms_to(response: HttpResponse, *urls: str) -> None:
    """Name the origins that this page's forms end at after a redirect: Chromium blocks any other."""
    origins = {_origin(url) for url in urls if urlsplit(url).netloc}
    response._csp_update = {"form-action": sorted(origins)}  # type: ignore[attr-defined]  # django-csp's hook


def _origin(url: str) -> str:
    """A header is ASCII: a name such as bücher.example is named as DNS knows it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.encode('idna').decode()}"
