"""A connection whose server may be silent for so long and no longer: PostgreSQL's own limits end with its process."""

from typing import Any

import psycopg
from psycopg.errors import _WaitTimeout

ANSWER_SECONDS = 1.0  # for what takes no time but the way there and back
STATEMENT_SECONDS = 5.0


class BoundedConnection(psycopg.Connection[Any]):
    """Breaks, with an OperationalError, when an answer takes longer than `seconds`."""

    seconds = ANSWER_SECONDS

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, self.seconds if timeout is None else timeout)
        except _WaitTimeout:
            self.close()  # the answer may still come, to nobody's question
            raise
