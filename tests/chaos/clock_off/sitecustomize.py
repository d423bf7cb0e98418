"""Repairs sleeps in a Python under faketime, which breaks sleeps until a moment of the monotonic clock."""

import select
import time
from typing import SupportsIndex


def sleep(seconds: float | SupportsIndex) -> None:
    select.select([], [], [], float(seconds))


time.sleep = sleep
