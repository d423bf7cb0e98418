"""The checks of `manage.py doctor`, which tests whether everything that the service needs is there and answers.

Each start has already checked the variables (`config/variables`).
"""

from typing import NamedTuple


class Finding(NamedTuple):
    """A problem and its remedy, in one text. If the problem is only a warning, the service works despite it."""

    sentence: str
    is_warning: bool = False
