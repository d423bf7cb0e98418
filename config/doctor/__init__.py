"""The checks of `manage.py doctor`, which tests whether everything that the service needs is there and answers.

Each start has already checked the variables (`config/variables`).
"""

from typing import NamedTuple


class Finding(NamedTuple):
    """A sentence that says what is wrong, with its remedy. The service still works despite a warning."""

    sentence: str
    is_warning: bool = False
