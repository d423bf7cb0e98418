"""Wait for a condition until a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

Seen = TypeVar("Seen")


def until(ask: Callable[[], Seen | None], *, within: float, what: str) -> Seen:
    """Call `ask` until it returns a truthy value, and return that value.

    Fail with `what`, the name of the condition, if this takes longer than `within` seconds.
    """
    deadline = time.monotonic() + within
    while True:
        seen = ask()
        if seen:
            return seen
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {within} s; last seen: {seen!r}")
        time.sleep(0.05)
