"""The probes /livez (alive) and /readyz (can serve), and /metrics: of web processes, and of workers and beat too.

Redis is not asked: nothing that matters is there. Rules environment.probes, environment.metrics.
"""

from http import HTTPStatus

from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from config import fitness, metrics
from config.lib.process import liveness


class HealthMiddleware(MiddlewareMixin):
    """Answers before the host and https are checked: probes come by IP address."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.path_info not in PATHS:
            return None
        status, body = answer(request.path_info, request.headers.get("Authorization", ""))
        return HttpResponse(body, status=status, content_type=metrics.CONTENT_TYPE)


PATHS = ("/livez", "/readyz", "/metrics")


def answer(path: str, authorization: str) -> tuple[HTTPStatus, bytes]:
    """Return the status and the text for one of PATHS, or 404; `authorization` is the request's header."""
    match path:
        case "/livez":
            reason = ", ".join(liveness.standing_still())
            return _state(f"{reason} stands still" if reason else "", "alive")
        case "/readyz":
            return _state(_reason_not_ready(), "ready")
        case "/metrics" if metrics.is_allowed(authorization):
            return HTTPStatus.OK, metrics.text()
        case _:
            return HTTPStatus.NOT_FOUND, b"not found\n"


def _state(reason: str, else_: str) -> tuple[HTTPStatus, bytes]:
    return HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK, f"{reason or else_}\n".encode()


def _reason_not_ready() -> str:
    """Return "" while the database answers and, outside local, is the one that was meant; else what is wrong."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return (not settings.LOCAL and fitness.reason()) or fitness.reason_closed()
    except Error:
        return "the database does not answer"
