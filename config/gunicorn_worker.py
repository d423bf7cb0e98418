"""The gunicorn worker class of the web processes: a slow peer holds up nobody but itself."""

import contextlib
from concurrent.futures import Future
from typing import Any

from gunicorn.http import errors
from gunicorn.util import write_nonblock
from gunicorn.workers.gthread import ThreadWorker

from config.lib.web import bodies, malformed, request_id

# No caller's doing, though gunicorn counts them among what is no HTTP.
OURS = (errors.ConfigurationProblem, errors.InvalidResponseHeader, errors.InvalidResponseHeaderName)


class Worker(ThreadWorker):
    """Gunicorn's threads, with a bound on their waits for a request's head and for a peer to hang up."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._watch = bodies.Watch()

    def handle(self, conn: Any) -> Any:
        """Bound the wait for the rest of a request's head, which gunicorn would make as long as the peer likes."""
        with self._watch.over(conn.sock):
            return super().handle(conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Answer what is no HTTP, or broke, in our words: gunicorn repeats what was sent, a secret too, and logs it."""
        number = request_id.new()
        if isinstance(exc, errors.ParseException) and not isinstance(exc, OURS):
            self.log.warning("no_http kind=%s request_id=%s", type(exc).__name__, number)
            answer = malformed.answer(_words_on(exc), number)
        else:
            self.log.error("broken request_id=%s", number, exc_info=exc)
            status = "500 Internal Server Error"
            answer = malformed.answer(malformed.BROKEN, number, code="internal_error", status=status)
        with contextlib.suppress(OSError):
            write_nonblock(client, answer)

    def finish_request(self, conn: Any, fs: "Future[Any]") -> None:
        """End a request without gunicorn's wait for the peer to hang up, in the thread that accepts all others."""
        is_kept = not fs.cancelled() and fs.exception() is None and fs.result()
        if not is_kept:
            bodies.end_reading(conn.sock)
        super().finish_request(conn, fs)


def _words_on(exc: errors.ParseException) -> str:
    match exc:
        case errors.LimitRequestLine():
            return malformed.LINE
        case errors.LimitRequestHeaders():
            return malformed.FIELDS
    return malformed.OTHER
