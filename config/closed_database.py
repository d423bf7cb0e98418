"""Responses with status 503 and Retry-After while a restored database is closed. Rule restore.closed."""

from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from config import errors
from config.lib.web import error_pages
from payments import restore_guard

# Addresses that show or change orders. The portal and the admin stay open, because operators need them for the
# repair.
CLOSED_CALLS = ("/api/merchant/", "/api/sandbox/")
CLOSED_PAGES = ("/pay", "/provider/notifications")
RETRY_SECONDS = 30


class ClosedMiddleware(MiddlewareMixin):
    """Middleware that answers 503 to API calls and payers while the database is closed.

    In a restored database, an order can be missing or marked as unpaid although its money was taken. This
    middleware must run after those that set the payer's language and the headers of its response.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if not request.path_info.startswith(CLOSED_CALLS + CLOSED_PAGES) or not _is_closed():
            return None
        if request.path_info.startswith(CLOSED_CALLS):
            return _as_unavailable(errors.json_error_response("service_unavailable"))
        return _as_unavailable(error_pages.show_internal_error(request))


def _as_unavailable(response: HttpResponse) -> HttpResponse:
    response.status_code = 503
    response["Retry-After"] = str(RETRY_SECONDS)
    return response


def _is_closed() -> bool:
    """Return True if the database is closed or does not answer.

    If the database does not answer now, a restored and therefore closed one might answer when the view reads.
    """
    try:
        return restore_guard.is_closed()
    except Error:
        return True
