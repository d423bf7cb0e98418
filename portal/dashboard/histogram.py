"""Histograms of durations: counts in slots that grow by a constant factor, good enough for percentiles."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SLOTS = 60


@dataclass(frozen=True)
class Scale:
    """A logarithmic scale of SLOTS slots from the duration `low` to the duration `high`.

    A duration below `low` is counted in the first slot, and one above `high` in the last slot.
    """

    low: float
    high: float

    def counted(self, slots: Iterable[int]) -> list[int]:
        """Return how often each slot of the scale occurs in `slots`."""
        counts = [0] * SLOTS
        for slot in slots:
            counts[min(max(slot, 0), SLOTS - 1)] += 1
        return counts

    def percentile(self, counts: Sequence[int], share: float) -> float | None:
        """Return a percentile, such as the median for a share of 0.5, with an error of at most 7 %.

        Return None if no duration was counted.
        """
        total = sum(counts)
        if not total:
            return None
        wanted, passed = share * total, 0
        for slot, count in enumerate(counts):
            if count and passed + count >= wanted:
                inside = (wanted - passed) / count
                return float(self.low * (self.high / self.low) ** ((slot + inside) / SLOTS))
            passed += count
        return self.high

    @property
    def sql(self) -> str:
        """The SQL expression for a duration's slot. Its `{value}` must be replaced by the duration."""
        logarithm = f"ln(greatest(({{value}})::float8, {self.low}))"
        return f"width_bucket({logarithm}, ln({self.low}), ln({self.high}), {SLOTS}) - 1"


HOLD_SECONDS = Scale(0.05, 150.0)
ANSWER_MS = Scale(1.0, 20_000.0)
