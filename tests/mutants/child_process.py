"""Calls a function in a child process, so that its changes to this process are lost."""

import contextlib
import os
import signal
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import NoReturn, TypeVar

T = TypeVar("T")


def call_in_child(work: Callable[[], T], seconds: float) -> T | None:
    """Return what `work` returns in a forked process, or None if that process ends early or takes longer.

    When this function returns, the whole process group of the child is dead.
    """
    reader, writer = Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        _answer(work, writer)
    writer.close()
    try:
        answer: T | None = reader.recv() if reader.poll(seconds) else None
    except EOFError:
        answer = None
    finally:
        reader.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return answer


def _answer(work: Callable[[], T], writer: "Connection[T, object]") -> NoReturn:
    try:
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        writer.send(work())
    finally:
        os._exit(0)
