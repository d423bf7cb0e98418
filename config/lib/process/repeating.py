"""A thread that calls a function again and again for as long as its process lives."""

import threading
import time
from collections.abc import Callable


def start_repeating(name: str, act: Callable[[], None], every_seconds: float) -> None:
    """Call `act` at once and then after each pause of `every_seconds`, in a daemon thread with this name.

    `act` handles its own errors: an exception ends the thread.
    """

    def repeat() -> None:
        while True:
            act()
            time.sleep(every_seconds)

    threading.Thread(target=repeat, name=name, daemon=True).start()
