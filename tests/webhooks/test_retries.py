"""The retry schedules are checked against tables of exact times."""

import itertools
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks import retries
from webhooks.models import EventType

EVENT_AT = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)
DELIVERY = UUID("01890000-0000-7000-8000-000000000001")
STATUSES = st.none() | st.integers(300, 599)


def seconds_to_next(
    event_type: str,
    *,
    attempts: int,
    ended: float,
    http_status: int | None = 500,
    valid_for: float | None = None,
    delivery_id: UUID = DELIVERY,
) -> float | None:
    """Return the seconds from the event to the next attempt, or None if there is no next attempt."""
    start = retries.next_attempt_at(
        attempted(event_type, attempts, ended, http_status, valid_for, delivery_id=delivery_id)
    )
    return None if start is None else (start - EVENT_AT).total_seconds()


def attempted(
    event_type: str,
    attempts: int,
    ended: float,
    http_status: int | None,
    valid_for: float | None,
    *,
    delivery_id: UUID = DELIVERY,
) -> retries.AttemptedDelivery:
    """Return a delivery whose latest attempt ended `ended` seconds after the event."""
    return retries.AttemptedDelivery(
        event_type=event_type,
        delivery_id=delivery_id,
        attempts=attempts,
        event_at=EVENT_AT,
        ended_at=EVENT_AT + timedelta(seconds=ended),
        valid_until=None if valid_for is None else EVENT_AT + timedelta(seconds=valid_for),
        http_status=http_status,
    )


class TestJitter:
    @given(delivery_id=st.uuids(), attempts=st.integers(1, 20))
    def test_stays_within_ten_percent_and_repeats(self, delivery_id: UUID, attempts: int) -> None:
        factor = retries.jitter_factor(delivery_id, attempts)
        assert 0.9 <= factor <= 1.1
        assert factor == retries.jitter_factor(delivery_id, attempts)

    def test_spreads_over_deliveries_and_attempts(self) -> None:
        assert len({retries.jitter_factor(uuid4(), 1) for _ in range(200)}) == 200
        assert len({retries.jitter_factor(DELIVERY, attempts) for attempts in range(1, 10)}) == 9
        drawn = [retries.jitter_factor(UUID(int=number), 1) for number in range(2000)]
        assert min(drawn) < 0.91 and max(drawn) > 1.09 and abs(sum(drawn) / len(drawn) - 1) < 0.01


class TestAuthorized:
    @pytest.mark.rule("delivery.hold")
    @pytest.mark.parametrize(("attempts", "start"), [(1, 5), (2, 25), (3, 75)])
    def test_starts_at_offsets_from_the_event(self, attempts: int, start: int) -> None:
        expected = start * retries.jitter_factor(DELIVERY, attempts)
        assert seconds_to_next("checkout.authorized", attempts=attempts, ended=0.2) == pytest.approx(expected)

    @pytest.mark.parametrize(("attempts", "ended"), [(1, 15.0), (2, 33.0), (3, 90.0)])
    def test_waits_three_seconds_after_a_late_previous_attempt(self, attempts: int, ended: float) -> None:
        assert seconds_to_next("checkout.authorized", attempts=attempts, ended=ended) == ended + 3

    def test_parks_after_the_fourth_attempt(self) -> None:
        assert seconds_to_next("checkout.authorized", attempts=4, ended=76, valid_for=120) is None

    @pytest.mark.rule("delivery.hold")
    @pytest.mark.parametrize(("valid_for", "expected"), [(112.999, None), (113.0, None), (113.001, 113.0)])
    def test_never_starts_at_or_after_the_end_of_the_window(
        self, valid_for: float, expected: float | None
    ) -> None:
        start = seconds_to_next("checkout.authorized", attempts=1, ended=110, valid_for=valid_for)
        assert start == expected

    @pytest.mark.rule("delivery.last_word")
    @pytest.mark.parametrize("http_status", [None, 408, 429, 500, 502, 503, 504, 599])
    def test_retries_after_no_response_and_after_temporary_errors(self, http_status: int | None) -> None:
        assert (
            seconds_to_next("checkout.authorized", attempts=1, ended=1, http_status=http_status) is not None
        )

    @pytest.mark.rule("delivery.last_word")
    @pytest.mark.parametrize(
        "http_status", [101, 301, 302, 307, 400, 401, 403, 404, 407, 409, 410, 428, 430, 499, 600, 999]
    )
    def test_parks_at_once_after_any_other_response(self, http_status: int) -> None:
        assert seconds_to_next("checkout.authorized", attempts=1, ended=1, http_status=http_status) is None

    @given(delivery_id=st.uuids(), took=st.lists(st.floats(0, 15), min_size=4, max_size=4))
    def test_makes_four_attempts_within_the_window_at_any_speed(
        self, delivery_id: UUID, took: list[float]
    ) -> None:
        starts: list[float] = [0.0]
        for attempts, seconds in enumerate(took[:3], start=1):
            start = seconds_to_next(
                "checkout.authorized",
                attempts=attempts,
                ended=starts[-1] + seconds,
                valid_for=120,
                delivery_id=delivery_id,
            )
            assert start is not None and start >= starts[-1] + seconds + 3 - 1e-5
            starts.append(start)
        assert starts[3] <= 82.5


@pytest.mark.rule("delivery.three_days")
@pytest.mark.parametrize("event_type", ["checkout.voided", "marketing.opted_in"])
class TestThreeDays:
    GAPS = (60, 300, 1800, 7200, 21600, 43200, 72000, 111600)

    def test_counts_its_gaps_from_the_end_of_the_previous_attempt(self, event_type: str) -> None:
        for attempts, gap in enumerate(self.GAPS, start=1):
            expected = 9000 + gap * retries.jitter_factor(DELIVERY, attempts)
            assert seconds_to_next(event_type, attempts=attempts, ended=9000) == pytest.approx(expected)

    def test_parks_after_the_ninth_attempt(self, event_type: str) -> None:
        assert seconds_to_next(event_type, attempts=8, ended=9000) is not None
        assert seconds_to_next(event_type, attempts=9, ended=9000) is None

    @given(http_status=STATUSES)
    def test_retries_after_any_failed_response(self, event_type: str, http_status: int | None) -> None:
        assert seconds_to_next(event_type, attempts=1, ended=1, http_status=http_status) is not None

    @given(delivery_id=st.uuids())
    def test_spreads_nine_attempts_over_about_three_days_with_growing_gaps(
        self, event_type: str, delivery_id: UUID
    ) -> None:
        starts = [0.0]
        for attempts in range(1, 9):
            start = seconds_to_next(event_type, attempts=attempts, ended=starts[-1], delivery_id=delivery_id)
            assert start is not None
            starts.append(start)
        gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
        assert gaps == sorted(gaps)
        assert 64 * 3600 < starts[-1] < 80 * 3600


class TestTestEvent:
    def test_gets_one_attempt(self) -> None:
        assert seconds_to_next("webhook.test", attempts=1, ended=1, http_status=None) is None


class TestResumedSchedule:
    @pytest.mark.parametrize(
        ("event_type", "planned", "start"),
        [
            *(("checkout.voided", 59, 60), ("checkout.voided", 61, 61)),
            *(("checkout.authorized", 62, 63), ("checkout.authorized", 64, 64)),
        ],
    )
    def test_continues_at_the_planned_time_or_after_the_pause(
        self, event_type: str, planned: int, start: int
    ) -> None:
        resumed = retries.resumes_at(
            EVENT_AT + timedelta(seconds=planned), attempted(event_type, 1, 60, 500, None)
        )
        assert resumed == EVENT_AT + timedelta(seconds=start)

    @pytest.mark.parametrize(("valid_for", "is_resumed"), [(75, False), (76, True)])
    def test_ends_at_the_end_of_the_window(self, valid_for: int, is_resumed: bool) -> None:
        planned = EVENT_AT + timedelta(seconds=75)
        resumed = retries.resumes_at(planned, attempted("checkout.authorized", 1, 60, 500, valid_for))
        assert resumed == (planned if is_resumed else None)


class TestPolicy:
    def test_knows_every_event_type(self) -> None:
        assert set(retries.SCHEDULES) == {event_type.value for event_type in EventType}


@pytest.mark.rule("delivery.delivered")
class TestIsDelivered:
    @pytest.mark.parametrize("http_status", [200, 201, 204, 299])
    def test_accepts_any_2xx(self, http_status: int) -> None:
        assert retries.is_delivered(http_status)

    @pytest.mark.parametrize("http_status", [None, 100, 199, 300, 304, 400, 500])
    def test_refuses_any_other_status(self, http_status: int | None) -> None:
        assert not retries.is_delivered(http_status)
