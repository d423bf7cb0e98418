"""The checks of `manage.py doctor`: whether everything that the service needs is there and answers.

The variables are checked before, at each start (`config/variables`).
"""

from typing import NamedTuple


class Finding(NamedTuple):
    """A sentence about what is wrong, with its remedy. A warning does not keep the service from working."""

    sentence: str
    is_warning: bool = False
