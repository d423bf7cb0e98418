"""A thread that calls a function repeatedly as long as its process lives."""

import threading
import time
from collections.abc import Callable


def start_repeating(name: str, act: Callable[[], None], every_seconds: float) -> None:
    """Call `act` at once, and then again after each pause of `every_seconds`, in a daemon thread with this name.

    `act` must handle its own errors, because an exception ends the thread.
    """

    def repeat() -> None:
        while True:
            act()
            time.sleep(every_seconds)

    threading.Thread(target=repeat, name=name, daemon=True).start()
