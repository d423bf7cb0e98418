"""The worker class of the web processes: a peer that dawdles holds up nobody but itself."""

from concurrent.futures import Future
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from config.lib.web import bodies


class Worker(ThreadWorker):
    """Gunicorn's threads, with an end to what they wait for: the head of a request, a peer that should hang up."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._watch = bodies.Watch()

    def handle(self, conn: Any) -> Any:
        """As gunicorn, which waits for the rest of a request's head for as long as its peer likes."""
        with self._watch.over(conn.sock):
            return super().handle(conn)

    def finish_request(self, conn: Any, fs: "Future[Any]") -> None:
        """As gunicorn, which waits up to two seconds for a peer to hang up, in the thread that accepts all others."""
        is_kept = not fs.cancelled() and fs.exception() is None and fs.result()
        if not is_kept:
            bodies.end_reading(conn.sock)
        super().finish_request(conn, fs)
