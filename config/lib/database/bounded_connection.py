"""A connection with a limit on its server's silence. PostgreSQL's own limits end with its process."""

from typing import Any

import psycopg
from psycopg.errors import _WaitTimeout

ANSWER_SECONDS = 1.0  # for a statement that takes no more time than the round trip
STATEMENT_SECONDS = 5.0


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that breaks, with an OperationalError, if an answer takes longer than `seconds`."""

    seconds = ANSWER_SECONDS

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, self.seconds if timeout is None else timeout)
        except _WaitTimeout:
            self.close()  # else the late answer would be read as that to the next statement
            raise
