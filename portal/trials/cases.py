"""The cases that the sandbox can run, as a table: what each is, and what it shows."""

from typing import NamedTuple

GOOD = "4242424242424242"


class Case(NamedTuple):
    """A case: `text` says what the sandbox does and what is wanted of the merchant's server. `card` pays the order."""

    name: str
    title: str
    text: str
    card: str = GOOD
    # Whether the sandbox takes the first attempt of checkout.authorized.
    takes_first: bool = False


_TABLE = (
    Case(
        "twice",
        "Take an event twice",
        "The sandbox sends checkout.authorized again after your capture. Answer 2xx, and do nothing else.",
    ),
    Case(
        "retry",
        "Recover from a failed delivery",
        "The sandbox answers 500 in your place, so your server first hears by the retry, five seconds later. "
        "Capture then.",
        takes_first=True,
    ),
)
CASES = {case.name: case for case in _TABLE}
