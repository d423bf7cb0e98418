"""Runs the emitter's process for a test. The test continues while the emitter works."""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tests.journeys.service import clerk


class Emitter:
    """A process that creates merchants and emits events. It carries out one command at a time."""

    def __init__(self, process: "subprocess.Popen[str]", pool: ThreadPoolExecutor) -> None:
        self._process, self._pool = process, pool

    def ask(self, **command: Any) -> "Future[Any]":
        return self._pool.submit(self._ask, command)

    def _ask(self, command: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextlib.contextmanager
def emitting(variables: Mapping[str, str]) -> Iterator[Emitter]:
    """Run an emitter with these environment variables for the duration of the block."""
    with clerk(variables, module="tests.chaos.webhooks.emitter") as process, ThreadPoolExecutor(1) as pool:
        yield Emitter(process, pool)
