"""Histograms of durations. The slots grow by a constant factor, which is precise enough for percentiles."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SLOTS = 60


@dataclass(frozen=True)
class Scale:
    """A logarithmic scale with SLOTS slots, from the duration `low` to the duration `high`.

    A duration below `low` counts in the first slot, and a duration above `high` in the last slot.
    """

    low: float
    high: float

    def count_slots(self, slots: Iterable[int]) -> list[int]:
        """For each slot of the scale, return how often it occurs in `slots`."""
        counts = [0] * SLOTS
        for slot in slots:
            counts[min(max(slot, 0), SLOTS - 1)] += 1
        return counts

    def percentile(self, counts: Sequence[int], share: float) -> float | None:
        """Return a percentile with an error of at most 7 %. For example, the share 0.5 returns the median.

        Return None if no duration was counted.
        """
        total = sum(counts)
        if not total:
            return None
        target, below = share * total, 0
        for slot, count in enumerate(counts):
            if count and below + count >= target:
                fraction = (target - below) / count
                return float(self.low * (self.high / self.low) ** ((slot + fraction) / SLOTS))
            below += count
        return self.high

    @property
    def sql(self) -> str:
        """The SQL expression for a duration's slot. The caller replaces `{value}` in it with the duration."""
        logarithm = f"ln(greatest(({{value}})::float8, {self.low}))"
        return f"width_bucket({logarithm}, ln({self.low}), ln({self.high}), {SLOTS}) - 1"


HOLD_SECONDS = Scale(0.05, 150.0)
ANSWER_MS = Scale(1.0, 20_000.0)
