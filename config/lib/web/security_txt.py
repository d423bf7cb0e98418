"""How to report a vulnerability: `/.well-known/security.txt` (RFC 9116), and the page with the policy.

Rule secret.security_txt.
"""

from datetime import timedelta
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from config.lib.web import origins

VALID = timedelta(days=180)  # RFC 9116 recommends less than one year
PATH = "/.well-known/security.txt"


@cache_control(public=True, max_age=86_400)
@require_safe
def security_txt(request: HttpRequest) -> HttpResponse:
    """Return the contact for vulnerability reports."""
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    hosts = dict.fromkeys(origins.origin_of(url) for url in (settings.BASE_URL, settings.CHECKOUT_PAGE_URL))
    lines = [
        f"Contact: mailto:{quote(settings.SUPPORT_EMAIL, safe='@+')}",
        f"Expires: {today + VALID:%Y-%m-%dT%H:%M:%SZ}",
        "Preferred-Languages: en",
        *(f"Canonical: {host}{PATH}" for host in hosts),
        f"Policy: {settings.BASE_URL}/security",
    ]
    return HttpResponse("\n".join([*lines, ""]), content_type="text/plain; charset=utf-8")


@cache_control(public=True, max_age=86_400)
@require_safe
def policy(request: HttpRequest) -> HttpResponse:
    """Return the page that explains what to report and how."""
    return render(request, "security_policy.html", {"write_to": settings.SUPPORT_EMAIL})
