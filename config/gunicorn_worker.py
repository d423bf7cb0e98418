"""The gunicorn worker class of the web processes. It prevents a slow client from delaying other clients."""

import contextlib
from concurrent.futures import Future
from typing import Any

from gunicorn.http import errors
from gunicorn.util import write_nonblock
from gunicorn.workers.gthread import ThreadWorker

from config.lib.web import bodies, malformed, request_id

# Errors that the service itself causes. Gunicorn would treat them as invalid HTTP from the client.
SERVER_ERRORS = (errors.ConfigurationProblem, errors.InvalidResponseHeader, errors.InvalidResponseHeaderName)


class Worker(ThreadWorker):
    """Gunicorn's threaded worker, with a limit on how long it waits for slow clients."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._watch = bodies.Watch()

    def handle(self, conn: Any) -> Any:
        """Handle a connection, with a time limit for the rest of the request's head. Gunicorn has no such limit."""
        with self._watch.over(conn.sock):
            return super().handle(conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Answer invalid HTTP and internal errors with our own responses.

        Gunicorn's responses and log lines would contain the client's bytes, which can include a secret.
        """
        number = request_id.new_id()
        if isinstance(exc, errors.ParseException) and not isinstance(exc, SERVER_ERRORS):
            self.log.warning("no_http kind=%s request_id=%s", type(exc).__name__, number)
            answer = malformed.error_response(_refusal_text(exc), number)
        else:
            self.log.error("broken request_id=%s", number, exc_info=exc)
            status = "500 Internal Server Error"
            answer = malformed.error_response(malformed.BROKEN, number, code="internal_error", status=status)
        with contextlib.suppress(OSError):
            write_nonblock(client, answer)

    def finish_request(self, conn: Any, fs: "Future[Any]") -> None:
        """End a request without waiting for the client to close the connection.

        Gunicorn would wait for this in the thread that accepts connections, and so delay every new
        connection.
        """
        is_kept = not fs.cancelled() and fs.exception() is None and fs.result()
        if not is_kept:
            bodies.end_reading(conn.sock)
        super().finish_request(conn, fs)


def _refusal_text(exc: errors.ParseException) -> str:
    match exc:
        case errors.LimitRequestLine():
            return malformed.LINE
        case errors.LimitRequestHeaders():
            return malformed.FIELDS
    return malformed.OTHER
