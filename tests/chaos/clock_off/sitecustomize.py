"""Repairs `time.sleep` in a Python that runs under faketime, which breaks sleeps on the monotonic clock."""

import select
import time
from typing import SupportsIndex


def sleep(seconds: float | SupportsIndex) -> None:
    select.select([], [], [], float(seconds))


time.sleep = sleep
