"""One monotonic deadline, passed down to every function that waits."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadline:
    """The moment at which every wait of a call must have ended."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(time.monotonic() + seconds)

    def sooner(self, seconds: float) -> "Deadline":
        """Return a deadline that is `seconds` earlier, which leaves that time for later steps."""
        return Deadline(self.at - seconds)

    def remaining(self, maximum: float = float("inf")) -> float:
        """Return the remaining seconds, at most `maximum`, never negative."""
        return max(0.0, min(maximum, self.at - time.monotonic()))
