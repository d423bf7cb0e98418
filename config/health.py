"""The probes /livez (alive) and /readyz (can serve), and /metrics, for web processes, workers and beat.

The probes do not check Redis, because it holds no important data.

Rules environment.probes, environment.metrics.
"""

from http import HTTPStatus

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from config import startup_checks, statements
from config.lib.database import queries
from config.lib.process import liveness
from config.monitoring import metrics


class HealthMiddleware(MiddlewareMixin):
    """Middleware that answers probes. It runs before the host check, because probes use the IP address as the host."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.path_info not in PATHS:
            return None
        status, body = answer_probe(request.path_info, request.headers.get("Authorization", ""))
        return HttpResponse(body, status=status, content_type=metrics.CONTENT_TYPE)


PATHS = ("/livez", "/readyz", "/metrics")


def answer_probe(path: str, authorization: str) -> tuple[HTTPStatus, bytes]:
    """Return the status and body of the response. `authorization` is the request's Authorization header.

    The status is 404 for a path that is not in PATHS. It is also 404 for /metrics if the header does not give
    access to the metrics.
    """
    match path:
        case "/livez":
            reason = ", ".join(liveness.stuck_threads())
            return _state(f"{reason} stands still" if reason else "", "alive")
        case "/readyz":
            return _state(_reason_not_ready(), "ready")
        case "/metrics" if metrics.is_allowed(authorization):
            return HTTPStatus.OK, metrics.metrics_text()
        case _:
            return HTTPStatus.NOT_FOUND, b"not found\n"


def _state(reason: str, else_: str) -> tuple[HTTPStatus, bytes]:
    return HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK, f"{reason or else_}\n".encode()


def _reason_not_ready() -> str:
    """Return the reason why this process cannot serve, or "" if it can.

    The database must answer, and must not be closed. Outside `local`, it must also pass the startup checks.
    """
    try:
        queries.execute(statements.PING)
        problems = [] if settings.LOCAL else startup_checks.problems_of_database()
        return "\n".join(problems) or startup_checks.reason_closed()
    except Error:
        return "the database does not answer"
