"""Repairs `time.sleep` under faketime: without this, a Python process cannot sleep on the monotonic clock."""

import select
import time
from typing import SupportsIndex


def sleep(seconds: float | SupportsIndex) -> None:
    select.select([], [], [], float(seconds))


time.sleep = sleep
