"""The state of a group of payers, and the time until its mates have paid."""

from datetime import timedelta

import pytest

from portal.orders import groups

pytestmark = pytest.mark.rule("portal.groups")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (5, "5 s"),
        (59.6, "1 min"),
        (1922, "32 min"),
        (11_400, "3 h 10"),
        (3600, "1 h 00"),
        (200_000, "2 days"),
    ],
)
def test_a_time_until_a_payment_is_written_in_words(seconds: float, words: str) -> None:
    assert groups.wait_words(timedelta(seconds=seconds)) == words
