"""Values that a process makes only once, even if several threads request them at the same time."""

import functools
from collections.abc import Callable
from threading import Lock
from typing import Generic, ParamSpec, TypeVar

Made = TypeVar("Made")
Given = ParamSpec("Given")


class Once(Generic[Given, Made]):
    """A cached function. While one caller makes a value, all other callers wait."""

    def __init__(self, make: Callable[Given, Made]) -> None:
        functools.update_wrapper(self, make)
        self._making = Lock()
        self._kept = functools.cache(make)

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Made:
        with self._making:
            return self._kept(*args, **kwargs)  # type: ignore[arg-type]  # they must be hashable

    def cache_clear(self) -> None:
        """Drop the value, so that the next call makes a new one."""
        self._kept.cache_clear()
