"""What the portal's filters make of words, moments and sums."""

import pytest

from portal.templatetags import portal


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Posted: you −£95.50, Visa +£1.00.", ["−£95.50,", "+£1.00."]),
        ("−£0.01", ["−£0.01"]),
        ("£95.50 is yours, or 3−4, or − 5.", []),
        ("−" + "9" * 300, []),  # somebody's words, which a narrow page has to break
    ],
)
def test_a_sum_with_a_sign_is_not_broken(words: str, shown: list[str]) -> None:
    whole = portal.whole_sums(words)
    assert [part.partition("</span>")[0] for part in whole.split('<span class="whole">')[1:]] == shown


def test_words_beside_a_sum_stay_words() -> None:
    assert portal.whole_sums("<b> −£1.00 & −<i>1") == (
        '&lt;b&gt; <span class="whole">−£1.00</span> &amp; −&lt;i&gt;1'
    )
