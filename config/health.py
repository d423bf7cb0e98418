"""The probes /livez (alive) and /readyz (can serve). Redis is not asked: nothing that matters is there.

Rule environment.probes.
"""

from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from config import fitness


class HealthMiddleware(MiddlewareMixin):
    """Answers /livez and /readyz before the host and https are checked: probes come by IP address."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        match request.path_info:
            case "/livez":
                return HttpResponse("alive\n", content_type="text/plain")
            case "/readyz":
                return _readiness()
        return None


def _readiness() -> HttpResponse:
    """Return 200 while the database answers and, outside local, is the one that was meant; else 503, and why."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        reason = "" if settings.LOCAL else fitness.reason()
    except Error:
        reason = "the database does not answer"
    return HttpResponse(f"{reason or 'ready'}\n", status=503 if reason else 200, content_type="text/plain")
