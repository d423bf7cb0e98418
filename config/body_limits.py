"""The middleware that refuses oversized bodies and file uploads before any code parses them."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from config import errors
from config.lib.web import bodies, error_pages
from config.lib.web.paths import API_PREFIXES, PAYER_PREFIXES
from portal.oauth import client_requests

TOO_LARGE = "This is more than we take here. Go back and send less."
TOO_LARGE_LOGO = "This file is too large. Go back and use a PNG or JPEG of at most 256 KB."
NO_FILES = "We take no files here. Go back and send the form alone."
# In bytes. A form costs far more to parse than JSON, and our forms are short. The limit is therefore lower than
# the limit for JSON.
LARGEST_FORM = 32 * 1024
MAX_PARTS = 100
# The form that uploads a logo. Its view parses the form only for signed-in users. The form's limit is higher
# than the limit for a logo. If a logo is slightly too large, the page can therefore explain the problem.
UPLOADS = {settings.LOGO_PATH: settings.LARGEST_UPLOAD}
LARGE_BODY_PREFIXES = ("/api/merchant/", "/api/sandbox/", "/provider/notifications")


class BodyMiddleware(MiddlewareMixin):
    """Middleware that answers 413 if a body is too large, and 415 if a page's form contains files.

    With a 413, it also closes the connection. No middleware before this one reads a body. Rule api.body_size.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if bodies.content_length(request.META) > _size_limit_of(request.path_info):
            response = _too_large(request)
            response["Connection"] = "close"
            return response
        return _no_files(request) if _is_upload(request) else None


def _is_upload(request: HttpRequest) -> bool:
    """Return whether a form contains files, or many more parts than our forms have.

    The form is not parsed, because parsing is expensive.
    """
    is_taken = request.path_info.startswith(API_PREFIXES) or request.path_info in UPLOADS
    if request.content_type != "multipart/form-data" or is_taken:
        return False
    return b"filename" in request.body or request.body.count(b"--") > 2 * MAX_PARTS


def _no_files(request: HttpRequest) -> HttpResponse:
    if errors.is_api(request.path_info):
        return errors.json_error_response("unsupported_media_type")
    return _render_refusal(request, 415, NO_FILES)


def _size_limit_of(path: str) -> int:
    if path.startswith(LARGE_BODY_PREFIXES):
        return settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return UPLOADS.get(path, LARGEST_FORM)


def _too_large(request: HttpRequest) -> HttpResponse:
    path = request.path_info
    if path in bodies.OAUTH:
        return client_requests.too_large()
    if errors.is_api(path):
        return errors.json_error_response("payload_too_large")
    return _render_refusal(request, 413, TOO_LARGE_LOGO if path in UPLOADS else TOO_LARGE)


def _render_refusal(request: HttpRequest, status: int, words: str) -> HttpResponse:
    """Return the HTML error page for payers' pages. For other pages, return `words` as plain text."""
    if request.path_info.startswith(PAYER_PREFIXES):
        return error_pages.show_unreadable_form(request, status)
    return HttpResponse(words, status=status, content_type="text/plain; charset=utf-8")
