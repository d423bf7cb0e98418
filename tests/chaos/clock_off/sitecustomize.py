"""Repairs `time.sleep` under faketime, which breaks a Python process's sleeps on the monotonic clock."""

import select
import time
from typing import SupportsIndex


def sleep(seconds: float | SupportsIndex) -> None:
    select.select([], [], [], float(seconds))


time.sleep = sleep
