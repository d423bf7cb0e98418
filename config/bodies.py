"""A body that is larger than we take is refused by its length, before anything is read or looked at."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from config import errors
from portal import oauth

TOO_LARGE = "This is more than we take here. Go back and send less."
LARGEST_FORM = 32 * 1024  # bytes; reading a form costs far more than reading JSON, and none of ours is longer
WITH_LARGE_BODIES = ("/api/merchant/", "/api/sandbox/", "/provider/notifications")


class BodyMiddleware:
    """Answers 413, and closes the connection, on which the rest would come."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if _length(request) <= _largest(request.path_info):
            return self._get_response(request)
        response = _refusal(request.path_info)
        response["Connection"] = "close"
        return response


def _length(request: HttpRequest) -> int:
    """As Django reads it: what is no number is no body."""
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0


def _largest(path: str) -> int:
    is_large = path.startswith(WITH_LARGE_BODIES)
    return settings.DATA_UPLOAD_MAX_MEMORY_SIZE if is_large else LARGEST_FORM


def _refusal(path: str) -> HttpResponse:
    if path == "/oauth/token":
        return oauth.too_large()
    if errors.is_api(path):
        return errors.json_answer("payload_too_large")
    return HttpResponse(TOO_LARGE, status=413, content_type="text/plain; charset=utf-8")
