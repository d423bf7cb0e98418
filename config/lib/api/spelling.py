"""Other spellings of a name that the API takes, such as `totalAmount` for `total_amount`."""

import re
from collections.abc import Iterable

_SPELT_TOGETHER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|-")  # where `totalAmount` and `total-amount` lack a "_"
MAX_SHOWN = 60  # characters of a caller's name that an error repeats


def snake_case(name: str) -> str:
    """Return `total_amount` for `totalAmount`, `TotalAmount`, `total-amount` and `Total_Amount`."""
    return _SPELT_TOGETHER.sub("_", name).lower()


def other_spellings(sent: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Map each of the known names that was sent only under another spelling to that spelling."""
    names, sent = set(known), list(sent)
    found = {snake_case(name): name[:MAX_SHOWN] for name in sent if name not in names}
    return {name: spelling for name, spelling in found.items() if name in names.difference(sent)}
