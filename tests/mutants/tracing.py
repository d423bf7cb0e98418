"""A pytest plugin that records which lines of a module each test executes.

Environment variables name the module (`TRACED`, its path in the repository) and the output file (`LINES`).
"""

import json
import os
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

Run = tuple[float, list[int]]  # duration in seconds, and the lines that were executed
RUNS: dict[str, Run] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    traced, lines = os.environ["TRACED"], set[int]()

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        lines.add(frame.f_lineno)
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return line(frame, event, argument) if frame.f_code.co_filename.endswith(traced) else None

    began = time.monotonic()
    threading.settrace(call)
    sys.settrace(call)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        RUNS[item.nodeid] = (time.monotonic() - began, sorted(lines))


def pytest_sessionfinish() -> None:
    Path(os.environ["LINES"]).write_text(json.dumps(RUNS))
