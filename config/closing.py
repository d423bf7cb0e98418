"""What the world is told while the database is closed: come again. Rule restore.closed."""

from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from config import errors
from config.lib.web import error_pages
from payments import opening

# What tells of orders, or changes them. Portal and admin stay: who repairs the database looks there.
CLOSED_CALLS = ("/api/merchant/", "/api/sandbox/")
CLOSED_PAGES = ("/pay", "/provider/notifications")
RETRY_SECONDS = 30


class ClosedMiddleware(MiddlewareMixin):
    """Answers 503 to calls: a restored database may call an order unpaid, or not know it, whose money was taken."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if not request.path_info.startswith(CLOSED_CALLS) or not _is_closed():
            return None
        return _later(errors.json_answer("service_unavailable"))


class ClosedPageMiddleware(MiddlewareMixin):
    """The same for pages: it stands behind what gives them their payer's language and their headers."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if not request.path_info.startswith(CLOSED_PAGES) or not _is_closed():
            return None
        return _later(error_pages.broken(request))


def _later(response: HttpResponse) -> HttpResponse:
    response.status_code = 503
    response["Retry-After"] = str(RETRY_SECONDS)
    return response


def _is_closed() -> bool:
    """Return whether the service is closed, or no database says so: another one may answer the view a moment later."""
    try:
        return opening.is_closed()
    except Error:
        return True
