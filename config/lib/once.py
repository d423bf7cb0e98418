"""Values that are made once per process, even if several threads request them at the same time."""

import functools
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Once(Generic[Made]):
    """A cached function without arguments. Its first caller makes the value, while the others wait for it."""

    def __init__(self, make: Callable[[], Made]) -> None:
        functools.update_wrapper(self, make)
        self._making = Lock()
        self._kept = functools.cache(make)

    def __call__(self) -> Made:
        with self._making:
            return self._kept()

    def cache_clear(self) -> None:
        """Drop the value, so that the next call makes a new one."""
        self._kept.cache_clear()
