"""The id of each request. The response header, all log lines, the error body and the timeline show it."""

import re
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter, Histogram
from uuid_utils.compat import uuid7

from config.lib.process import tracing

_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_current: ContextVar[tuple[str, float]] = ContextVar("request_id", default=("", 0.0))  # the id, the arrival
log = structlog.get_logger("request")

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}  # any other method is counted as "-"
REQUESTS = Counter("checkout_requests", "Requests answered", ["route", "method", "status"])
SECONDS = Histogram(
    "checkout_request_seconds",
    "Time to the answer",
    ["route"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


def new_id() -> str:
    """Return a new id for a request."""
    return f"req_{uuid7().hex}"


def valid_or_new_id(request_id: str) -> str:
    """Return the id that a caller sent if it is well formed; otherwise return a new id."""
    return request_id if _ACCEPTABLE.fullmatch(request_id) else new_id()


def current_id() -> str:
    """Return the id of the current request, or "" outside of a request."""
    return _current.get()[0]


def age_ms() -> int:
    """Return how many milliseconds ago the current request arrived."""
    return round((time.monotonic() - _current.get()[1]) * 1000)


class RequestIdMiddleware:
    """Middleware that gives each request its id, and counts and logs the request.

    The id is the caller's X-Request-Id if it is well formed, or a new one. When the merchant, client and
    checkout of a request are known, all its log lines contain them. Rules api.request_id, secret.logs.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = valid_or_new_id(request.headers.get("X-Request-Id", ""))
        started = time.monotonic()
        token = _current.set((request_id, started))
        structlog.contextvars.bind_contextvars(request_id=request_id)
        try:
            response = self._traced(request, started)
        finally:
            structlog.contextvars.clear_contextvars()
            _current.reset(token)
        response["X-Request-Id"] = request_id
        return response

    def _traced(self, request: HttpRequest, started: float) -> HttpResponse:
        with tracing.span("request", parent=_traceparent_of(request)) as span:
            response = self.get_response(request)
            self._count_and_log(request, response, started)
            if span is not None:
                self._describe(span, request, response)
        return response

    def _count_and_log(self, request: HttpRequest, response: HttpResponse, started: float) -> None:
        """Count and log the request by its route. Its path is not used, because it can contain a pay link's secret."""
        match, seconds = request.resolver_match, time.monotonic() - started
        route, status = match.route if match else "-", response.status_code
        method = request.method if request.method in METHODS else "-"
        REQUESTS.labels(route, method, status).inc()
        SECONDS.labels(route).observe(seconds)
        log.info("request", method=request.method, route=route, status=status, ms=round(seconds * 1000))

    def _describe(self, span: Any, request: HttpRequest, response: HttpResponse) -> None:
        match = request.resolver_match
        span.update_name(f"{request.method} {match.route if match else '-'}")
        span.set_attribute("http.response.status_code", response.status_code)
        span.set_attributes(structlog.contextvars.get_contextvars())


def _traceparent_of(request: HttpRequest) -> str:
    """Return the `traceparent` header of an API call, or "" for other requests.

    A merchant's backend can copy this header from our webhook into its API call.
    """
    is_api = request.path_info.startswith("/api/")
    header: str = request.headers.get("traceparent", "") if is_api else ""
    return header
