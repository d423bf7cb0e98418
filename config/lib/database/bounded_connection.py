"""A database connection with a time limit for each response, even if the server's machine is down."""

from typing import Any

import psycopg
from psycopg.errors import _WaitTimeout

ANSWER_SECONDS = 1.0  # for a statement that takes little more than the network round trip
STATEMENT_SECONDS = 5.0


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that closes and raises OperationalError if a response takes longer than `seconds`."""

    seconds = ANSWER_SECONDS

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, self.seconds if timeout is None else timeout)
        except _WaitTimeout:
            # Otherwise, a late response would be read as the response to the next statement.
            self.close()
            raise
