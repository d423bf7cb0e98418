"""Records the SQL statements of a request, without those of the sandbox provider."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from django.db import connection

from payments import provider

SAVEPOINTS = ("SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")


class ProviderShare:
    """Measures the CPU time of the sandbox provider in this process, so that it can be subtracted."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.is_calling = False

    @contextlib.contextmanager
    def watched(self) -> Iterator["ProviderShare"]:
        bank = provider.current_provider()
        with contextlib.ExitStack() as stack:
            for verb in ("capture", "look_up"):
                watching = self._watching(getattr(bank, verb))
                stack.enter_context(mock.patch.object(bank, verb, watching))
            yield self

    def _watching(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*arguments: Any) -> Any:
            self.is_calling, started = True, time.thread_time()
            try:
                return verb(*arguments)
            finally:
                self.seconds += time.thread_time() - started
                self.is_calling = False

        return measured


@contextlib.contextmanager
def recorded(share: ProviderShare | None = None) -> Iterator[list[str]]:
    """Yield a list of the SQL statements in the block.

    Leave out BEGIN, COMMIT, savepoints and the statements of the provider.
    """
    recorded_sql: list[str] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        if not (share and share.is_calling) and not sql.startswith(SAVEPOINTS):
            recorded_sql.append(sql)
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        yield recorded_sql
