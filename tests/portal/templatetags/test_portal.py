"""The portal's template filters for words, times and amounts."""

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from django.utils import timezone

from portal.templatetags import portal


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Posted: you −£95.50, Visa +£1.00.", ["−£95.50,", "+£1.00."]),
        ("−£0.01", ["−£0.01"]),
        ("£95.50 is yours, or 3−4, or − 5.", []),
        ("−" + "9" * 300, []),  # this text is not an amount, and a narrow page must be able to break it
    ],
)
def test_an_amount_with_a_sign_does_not_wrap(words: str, shown: list[str]) -> None:
    whole = portal.whole_sums(words)
    assert [part.partition("</span>")[0] for part in whole.split('<span class="whole">')[1:]] == shown


def test_text_next_to_an_amount_is_escaped() -> None:
    assert portal.whole_sums("<b> −£1.00 & −<i>1") == (
        '&lt;b&gt; <span class="whole">−£1.00</span> &amp; −&lt;i&gt;1'
    )


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        *((None, ""), (-3, ""), (0, "0 s"), (0.001, ""), (0.02, "+0.02 s"), (21.44, "+21.4 s")),
        *(
            (119.94, "+119.9 s"),
            (119.96, "+2:00"),
            (120, "+2:00"),
            (127.9, "+2:07"),
            (3599.9, "+59:59"),
            (3 * 3600, "+3 h"),
            (86_400 * 5, "+5 d"),
        ),
    ],
)
def test_the_time_since_the_hold_is_formatted(seconds: float | None, shown: str) -> None:
    span = None if seconds is None else timedelta(seconds=seconds)
    assert portal.offset(span).replace("\N{NO-BREAK SPACE}", " ") == shown


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        (datetime(2026, 12, 6, 21, 2, tzinfo=UTC), "Sun 6 December, 21:02"),
        (datetime(2027, 1, 3, 9, 0, tzinfo=UTC), "Sun 3 January 2027, 09:00"),
    ],
)
def test_a_deadline_has_its_day_and_another_year(
    monkeypatch: pytest.MonkeyPatch, ends: datetime, shown: str
) -> None:
    monkeypatch.setattr(timezone, "localdate", lambda: date(2026, 12, 6))
    assert portal.deadline(ends) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        *((None, ""), (9, "under 10 ms"), (10, "10 ms"), (70, "70 ms"), (999, "999 ms")),
        *((999.6, "1.0 s"), (1240, "1.2 s"), (15_000, "15 s")),
    ],
)
def test_a_duration_is_in_milliseconds_up_to_a_second(milliseconds: float | None, shown: str) -> None:
    assert portal.seconds(milliseconds).replace("\N{NO-BREAK SPACE}", " ") == shown


@pytest.mark.parametrize(
    ("ago", "shown"), [(timedelta(), r"^$"), (timedelta(days=400), r"^\d{1,2} [A-Z][a-z]{2} 20\d\d$")]
)
def test_a_day_is_named_unless_it_is_today(ago: timedelta, shown: str) -> None:
    moment = timezone.now() - ago
    assert re.match(shown, portal.day(moment))
    assert portal.when_exactly(moment).endswith(portal.time_of(moment))


def test_today_is_named_where_other_days_are_listed_too() -> None:
    now = timezone.now()
    assert portal.when_exactly(now, False) == f"Today, {portal.time_of(now)}"
    assert portal.when(now, False) == f"Today, {portal.when(now)}"
    before = now - timedelta(days=400)
    assert portal.when(before, False) == portal.when(before)


def test_an_event_s_name_is_whole_with_its_colon() -> None:
    words = portal.whole_names(
        portal.whole_sums("Attempt 1 of checkout.authorized: 200 in 0.21 s, <b> −£1.00")
    )
    assert words == (
        'Attempt 1 of <span class="name">checkout.<wbr>authorized:</span> 200 in 0.21 s, &lt;b&gt; '
        '<span class="whole">−£1.00</span>'
    )
    assert portal.whole_names("<b>a.b") == '&lt;b&gt;<span class="name">a.<wbr>b</span>', (
        "what is no HTML yet"
    )


def test_a_path_can_wrap_after_its_slashes() -> None:
    assert portal.parted("/api/v1/a<b>/c") == "/api/<wbr>v1/<wbr>a&lt;b&gt;/c"


def test_a_long_id_is_shortened_in_the_middle() -> None:
    assert portal.shortened("req_7Qm0aa") == "req_7Qm0aa"
    assert portal.shortened("req_01a21211882c7641acfe0890cb7487fb") == "req_01a21211…7487fb"
