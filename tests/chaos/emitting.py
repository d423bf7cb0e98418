"""The emitter, as a test uses it: it works while the test continues."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from config.local import children
from tests.journeys.service import ROOT


class Emitter:
    """A process that emits events, one request after the other."""

    def __init__(self, process: "subprocess.Popen[str]", pool: ThreadPoolExecutor) -> None:
        self._process, self._pool = process, pool

    def ask(self, **asked: Any) -> "Future[Any]":
        return self._pool.submit(self._ask, asked)

    def _ask(self, asked: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextlib.contextmanager
def emitting(variables: Mapping[str, str]) -> Iterator[Emitter]:
    """Run an emitter in the environment until the block ends."""
    command = children.tied([sys.executable, "-m", "tests.chaos.emitter"], by=signal.SIGTERM)
    with subprocess.Popen(
        command, env=dict(variables), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        with ThreadPoolExecutor(1) as pool:
            yield Emitter(process, pool)
        assert process.stdin is not None
        process.stdin.close()
