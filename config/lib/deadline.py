"""A monotonic deadline that callers pass to every function that waits."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadline:
    """The moment at which all waiting within a call must end."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(time.monotonic() + seconds)

    def sooner(self, seconds: float) -> "Deadline":
        """Return a deadline that is `seconds` earlier, so that later steps have this time left."""
        return Deadline(self.at - seconds)

    def remaining(self, maximum: float = float("inf")) -> float:
        """Return the seconds until the deadline, at most `maximum` and never negative."""
        return max(0.0, min(maximum, self.at - time.monotonic()))
