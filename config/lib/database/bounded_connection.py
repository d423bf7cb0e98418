"""A database connection with a time limit for each answer, even if the server's machine is down."""

from typing import Any

import psycopg
from psycopg.errors import _WaitTimeout

ANSWER_SECONDS = 1.0  # for a statement that takes little longer than the network round trip
STATEMENT_SECONDS = 5.0


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that closes, and raises OperationalError, if an answer takes longer than `seconds`."""

    seconds = ANSWER_SECONDS

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, self.seconds if timeout is None else timeout)
        except _WaitTimeout:
            # Otherwise, the late answer would be read as the answer to the next statement.
            self.close()
            raise
