"""One id per request: in the answer's header, in every log line, in the error body, on the timeline."""

import re
import time
from collections.abc import Callable
from contextvars import ContextVar

import structlog
from django.http import HttpRequest, HttpResponse
from uuid_utils.compat import uuid7

_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_current: ContextVar[str] = ContextVar("request_id", default="")
log = structlog.get_logger("request")


def current() -> str:
    """Return the id of the request being answered, "" outside of one."""
    return _current.get()


class RequestIdMiddleware:
    """Keeps a caller's well-formed X-Request-Id, else makes one; logs one line a request (rule api.request_id)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        request_id = given if _ACCEPTABLE.fullmatch(given) else f"req_{uuid7().hex}"
        token = _current.set(request_id)
        started = time.monotonic()
        try:
            with structlog.contextvars.bound_contextvars(request_id=request_id):
                response = self.get_response(request)
                self._log(request, response, started)
        finally:
            _current.reset(token)
        response["X-Request-Id"] = request_id
        return response

    def _log(self, request: HttpRequest, response: HttpResponse, started: float) -> None:
        """Log the route, not the path: an id in an address may be a pay link's secret."""
        match = request.resolver_match
        milliseconds = round((time.monotonic() - started) * 1000)
        route = match.route if match else "-"
        log.info("request", method=request.method, route=route, status=response.status_code, ms=milliseconds)
