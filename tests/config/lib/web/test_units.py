import pytest

from config.lib.web import units


@pytest.mark.parametrize(
    "words",
    [
        "each step takes 2_s",
        "ends after 2_min, or in 10_s.",
        "at most 256_KiB of 4 levels",
        "in <strong>5</strong>_s.",
        "{seconds} seconds, {seconds}_s",
        "2 secrets, 3 hours, 5 minutes, 100_%, %(count)s shares",
    ],
)
def test_only_a_number_and_its_unit_have_a_no_break_space(words: str) -> None:
    assert units.join_units(words.replace("_", " ")) == words.replace("_", "\N{NO-BREAK SPACE}")
