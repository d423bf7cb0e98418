"""The database counts durations in histogram slots, so that percentiles are accurate to seven percent."""

import random

import pytest
from django.db import connection

from portal.dashboard import histogram
from portal.dashboard.histogram import HOLD_SECONDS
from tests.portal.stage import slot_of

pytestmark = pytest.mark.django_db


class TestHistogram:
    @pytest.mark.parametrize("share", [0.05, 0.5, 0.95, 0.99])
    def test_percentiles_are_within_seven_percent(self, share: float) -> None:
        dice = random.Random(7)
        times = sorted(min(119.0, dice.lognormvariate(0.6, 1.2)) for _ in range(5000))
        counts = HOLD_SECONDS.count_slots(slot_of(HOLD_SECONDS, value) for value in times)
        exact = times[int(share * len(times))]
        found = HOLD_SECONDS.percentile(counts, share)
        assert found is not None and abs(found - exact) / exact < 0.07

    def test_without_data_has_no_percentile(self) -> None:
        assert HOLD_SECONDS.percentile([], 0.5) is None

    def test_counts_values_out_of_range_in_its_end_slots(self) -> None:
        counts = HOLD_SECONDS.count_slots([-1, histogram.SLOTS])
        assert (counts[0], counts[-1], sum(counts)) == (1, 1, 2)

    def test_slots_match_those_of_the_database(self) -> None:
        values = [0.0, 0.05, 0.3, 1.8, 41.0, 149.0, 1000.0]
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {HOLD_SECONDS.sql.format(value='v')} FROM unnest(%s::float8[]) v", [values]
            )
            found = [min(max(row[0], 0), histogram.SLOTS - 1) for row in cursor.fetchall()]
        assert found == [slot_of(HOLD_SECONDS, value) for value in values]
