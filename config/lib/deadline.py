"""One monotonic deadline, handed down through everything that waits."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadline:
    """A moment that no wait of a call may pass."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(time.monotonic() + seconds)

    def sooner(self, seconds: float) -> "Deadline":
        """Return a deadline that is `seconds` earlier, which leaves them for what comes after it."""
        return Deadline(self.at - seconds)

    def left(self, maximum: float = float("inf")) -> float:
        """Return the seconds that are left, at most `maximum`, never negative."""
        return max(0.0, min(maximum, self.at - time.monotonic()))
