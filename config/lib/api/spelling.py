"""Names in the API that a caller probably meant: `total_amount` for `totalAmount`, and `amount` for `amout`."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice

_SPELT_TOGETHER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|-")  # where `totalAmount` and `total-amount` lack a "_"
_SHORTEST, _LONGEST = 3, 64  # a name with fewer or more characters is not compared with known names
MAX_SHOWN = 60  # how many characters of a caller's name an error repeats
MAX_COMPARED = 10  # names compared per object, which limits the time for a body with thousands of names


def snake_case(name: str) -> str:
    """Return `total_amount` for `totalAmount`, `TotalAmount`, `total-amount` and `Total_Amount`."""
    return _SPELT_TOGETHER.sub("_", name).lower()


def similar_name(sent: str, known: Iterable[str]) -> str:
    """Return the known name that a caller probably meant, or "" if there is none.

    About one letter in six can differ, and in a short name one letter. Names of more than 64 characters are
    not compared, because the time to compare two names grows with both lengths.
    """
    if not _SHORTEST <= len(sent) <= _LONGEST:
        return ""
    similarity = min(5 / 6, (len(sent) - 1) / len(sent))
    return next(iter(get_close_matches(snake_case(sent), known, n=1, cutoff=similarity)), "")


def other_spellings(sent: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return a dict from each missing known name to the misspelt name that was probably sent in its place."""
    names, sent = set(known), list(sent)
    unknown, missing = [name for name in sent if name not in names], names.difference(sent)
    found = {similar_name(name, missing): name for name in islice(unknown, MAX_COMPARED)}
    found |= {snake_case(name): name for name in unknown}
    return {name: spelling[:MAX_SHOWN] for name, spelling in found.items() if name in missing}


def similar_path(sent: Sequence[str], known: Iterable[Sequence[str]]) -> Sequence[str]:
    """Return the known path that a caller probably meant, as segments, or () if there is none.

    A segment `<…>` in a known path matches any segment.
    """
    meant = [path for path in (_fill_in(sent, route) for route in known) if path]
    return min(meant, key=lambda path: sum(map(str.__ne__, sent, path)), default=())


def _fill_in(sent: Sequence[str], route: Sequence[str]) -> Sequence[str]:
    """Return a known path with its `<…>` replaced by the sent segments, or () if another segment is not similar."""
    if len(sent) != len(route):
        return ()
    path = [
        one if known.startswith("<") or one == known else similar_name(one, [known])
        for one, known in zip(sent, route, strict=True)
    ]
    return path if all(path) else ()
