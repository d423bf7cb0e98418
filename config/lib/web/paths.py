"""The path prefixes of the API and of the payers' pages."""

import re
from urllib.parse import urlencode

from django.http import HttpRequest

from config.lib.web import bodies

API_PREFIXES = ("/api/merchant/", "/api/sandbox/", *bodies.OAUTH)
PAYER_PREFIXES = ("/pay", "/bank/card/", "/bank/challenge/")
# Matches the path of a payer's page. The path of a form on such a page begins with the path of the page, and can
# be longer.
_PAYER_PAGE = re.compile(r"/bank/.+|/pay/(?:(?:share|stop|offers)/[^/]+|g/[^/]+(?:/\d+)?)")


def payer_page(request: HttpRequest) -> str:
    """Return the address of the payer's page that contains a form, or "" if the form is not on a payer's page."""
    if found := _PAYER_PAGE.match(request.path):
        return found[0]
    checkout = request.GET.get("id", "")
    return f"/pay?{urlencode({'id': checkout})}" if request.path.startswith("/pay/") and checkout else ""
