"""Histograms of durations: counts in slots that grow by a constant factor, good enough for percentiles."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SLOTS = 60


@dataclass(frozen=True)
class Scale:
    """A scale of SLOTS slots between two durations. Other durations go into the first or the last slot."""

    low: float
    high: float

    def counted(self, slots: Iterable[int]) -> list[int]:
        """Return how often each slot occurs."""
        counts = [0] * SLOTS
        for slot in slots:
            counts[min(max(slot, 0), SLOTS - 1)] += 1
        return counts

    def percentile(self, counts: Sequence[int], share: float) -> float | None:
        """Return the duration that this share of the counts does not exceed, within 7 %.

        It is None without counts.
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
        """The slot as an SQL expression, to be formatted with the duration's expression as `{value}`."""
        logarithm = f"ln(greatest(({{value}})::float8, {self.low}))"
        return f"width_bucket({logarithm}, ln({self.low}), ln({self.high}), {SLOTS}) - 1"


HOLD_SECONDS = Scale(0.05, 150.0)
ANSWER_MS = Scale(1.0, 20_000.0)
