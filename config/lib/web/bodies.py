"""Reads the whole body before the application gets the request, with limits on size and time.

Rules api.body_size, api.slow_body.
"""

import contextlib
import io
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import structlog

from config.lib.web import malformed, request_id

log = structlog.get_logger("request")
Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
CLOSE = ("Connection", "close")
OAUTH = ("/oauth/token", "/oauth/revoke")  # their error responses follow RFC 6749
SECONDS = 10.0  # the rest of a request must arrive within this time
LONGEST_PARAMETERS = 256  # maximum characters of a content type's parameters; a boundary has at most 70
TOO_SLOW = "The request body did not arrive completely in time. Send it again."


class CountedBodies:
    """A WSGI wrapper that reads the whole body, chunked or not, before it calls the application.

    The limit is `largest` bytes. `larger` maps some paths to higher limits. Of a chunked body over the limit,
    the wrapper reads one byte more than the limit. It does not read any other body over the limit. In both
    cases, CONTENT_LENGTH is above the limit, and the application must refuse the request.

    If the response has `Connection: close`, the wrapper closes the connection.
    """

    def __init__(
        self, application: Application, *, largest: int, larger: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        self._application = application
        self._largest, self._larger = largest, larger
        self._watch = Watch()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        environ["CONTENT_TYPE"] = _content_type(environ)
        start = _close_on_request(environ, start_response)
        if self._is_whole(environ):
            return self._application(environ, start)
        return [_start_timeout_response(environ, start)]

    def _is_whole(self, environ: Environ) -> bool:
        """Read the body; return whether all of it arrived. For a body over the limit, return True."""
        expected = content_length(environ)
        largest = self._larger.get(environ.get("PATH_INFO", ""), self._largest)
        is_chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        if not is_chunked and not 0 < expected <= largest:
            return True
        body = self._read(environ, largest + 1 if is_chunked else expected)
        environ["wsgi.input"] = io.BytesIO(body or b"")
        environ["CONTENT_LENGTH"] = str(len(body or b""))
        return body is not None and (is_chunked or len(body) == expected)

    def _read(self, environ: Environ, maximum: int) -> bytes | None:
        """Return at most `maximum` bytes of the body, or None if the read fails or takes too long."""
        with self._watch.over(environ.get("gunicorn.socket")) as in_time:
            try:
                body: bytes = environ["wsgi.input"].read(maximum)
            except OSError:
                return None
            return body if in_time() else None


def content_length(environ: Environ) -> int:
    """Return the Content-Length as Django reads it: 0 if it is not a number."""
    try:
        return int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0


def _start_timeout_response(environ: Environ, start: StartResponse) -> bytes:
    """Start the response to a request whose body did not arrive, and return the body of the response.

    For OAuth clients, the response follows RFC 6749.
    """
    number = request_id.valid_or_new_id(environ.get("HTTP_X_REQUEST_ID", ""))
    log.warning("slow_body", request_id=number)
    body = malformed.error_envelope("request_timeout", TOO_SLOW, number)
    if environ.get("PATH_INFO") in OAUTH:
        body = json.dumps({"error": "invalid_request", "error_description": TOO_SLOW}).encode()
    start("408 Request Timeout", [*malformed.error_headers(body, number), CLOSE])
    return body


def _content_type(environ: Environ) -> str:
    """Return the content type. Of its parameters, keep only the boundary of a form.

    All bodies are UTF-8. Some other charsets and very long parameters would take far longer to process.
    """
    kind, parameters = environ.get("CONTENT_TYPE", "").partition(";")[::2]
    is_form = kind.strip().lower() == "multipart/form-data"
    is_odd = len(parameters) > LONGEST_PARAMETERS or "charset" in parameters.lower()
    return f"{kind};{parameters}" if is_form and not is_odd else kind


def _close_on_request(environ: Environ, start_response: StartResponse) -> StartResponse:
    """Wrap start_response so that a response with `Connection: close` closes the connection.

    Gunicorn ignores this header in a response, so the wrapper calls gunicorn's `force_close`.
    """
    close = getattr(getattr(start_response, "__self__", None), "force_close", None)

    def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
        if CLOSE in headers and close is not None:
            close()
            end_reading(environ.get("gunicorn.socket"))
        return start_response(status, [header for header in headers if header != CLOSE], *more)

    return start


def end_reading(connection: socket.socket | None) -> None:
    """Stop reading from the client. A pending read then ends, and the connection can close at once."""
    if connection is not None and not isinstance(connection, ssl.SSLSocket):
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RD)


class Watch:
    """A thread that ends reads that take too long. It runs only while some reads need it."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._until: dict[int, tuple[float, socket.socket]] = {}
        self._is_watched = False

    @contextlib.contextmanager
    def over(self, connection: socket.socket | None) -> Iterator[Callable[[], bool]]:
        """Watch the reads within the block. Yield a function that returns whether there is time left."""
        until = time.monotonic() + SECONDS
        if connection is not None:
            with self._changing:
                self._until[id(connection)] = until, connection
                self._begin()
        try:
            yield lambda: time.monotonic() < until
        finally:
            with self._changing:
                self._until.pop(id(connection), None)

    def _begin(self) -> None:
        if not self._is_watched:
            self._is_watched = True
            threading.Thread(target=self._keep_on, daemon=True, name="bodies").start()

    def _keep_on(self) -> None:
        while True:
            time.sleep(1)
            with self._changing:
                late = [found for until, found in self._until.values() if until < time.monotonic()]
                for connection in late:
                    end_reading(connection)
                self._is_watched = bool(self._until)
                if not self._is_watched:
                    return
