"""The cases that the sandbox can run: a table of their texts and requirements."""

from typing import NamedTuple

from webhooks.models import EventType

GOOD_CARD = "4242424242424242"


class Case(NamedTuple):
    """A case. `text` says what the sandbox does, and what the merchant's server must do.

    `card` is the number of the test card that pays for the order.
    """

    name: str
    title: str
    text: str
    waits_for: str  # what the server must do to pass the case
    then: str = ""  # what the server must do after the capture, or ""
    card: str = GOOD_CARD
    # Whether the sandbox decides when the first attempt to deliver checkout.authorized is made, and how it
    # ends.
    controls_first_attempt: bool = False
    # The event that the merchant's endpoint must receive, in addition to checkout.authorized.
    required_event: EventType = EventType.AUTHORIZED
    has_pledge: bool = False  # whether half of the order is held on a mate's card before the customer pays
    begin_at: str = ""  # the URL name of the page that asks a question before the case begins, or ""


_TABLE = (
    Case(
        "twice",
        "Handle an event twice",
        "The sandbox sends checkout.authorized again after your capture. Answer 2xx, and do not capture again.",
        "your capture, then your 2xx to the repeated event",
        "then answer 2xx when the event comes again",
    ),
    Case(
        "retry",
        "Recover from a failed delivery",
        "The sandbox answers the first attempt with 500 in place of your server. Your server gets the retry five "
        "seconds later. Capture then, or earlier if your server lists its holds.",
        "your capture, and your 2xx to the retry",
        "and answer 2xx to the retry",
        controls_first_attempt=True,
    ),
    Case(
        "slow",
        "Survive a lost answer",
        "The sandbox drops your first answer, as if it had come too late, and sends the event again. "
        "Still capture only once.",
        "one capture, and your 2xx to the repeated event",
        "once, and answer 2xx when the event comes again",
        controls_first_attempt=True,
    ),
    Case(
        "lapse",
        "Handle a hold that has lapsed",
        "The sandbox delays the event by two minutes, so your capture is refused with 409. Do not fulfil the order, "
        "and answer 2xx to checkout.voided.",
        "your answers to both events",
        controls_first_attempt=True,
        required_event=EventType.VOIDED,
    ),
    Case(
        "rotate",
        "Rotate the signing secret",
        "The sandbox rotates your signing secret, unless two secrets sign already, and shows the new secret here once. "
        "It then sends an event that both secrets sign. Accept the event if either signature is right.",
        "your capture, and your 2xx to the event",
        "and answer the event 2xx",
        begin_at="portal_rotate_and_run",
    ),
    Case(
        "refused",
        "Notice a refund that fails",
        "After your capture, the sandbox refunds the order, and the bank refuses the refund. No event reports this: "
        "list your checkouts by sort=updated_at, or read the order.",
        "your capture, then a read of the order after its refund has failed",
        "then read the order after its refund has failed",
        card="4000000000005126",
    ),
    Case(
        "lost",
        "Resolve a capture in doubt",
        "The bank captures, but its answer is lost, and your call gets 504. Repeat the call, or read the order, until "
        "you know the outcome.",
        "your capture, then a read of the order, or the capture again",
        "then read the order, or capture again",
        card="4000000000006975",
    ),
    Case(
        "unresolved",
        "Keep asking about a capture",
        "No capture reaches the bank: your call gets 504, and later calls get 409. Repeat the call after Retry-After, "
        "or read the order, until the hold ends. The case counts how often you ask. Do not fulfil the order.",
        "your capture, at least five more calls within the two minutes of the hold, and the end of the hold",
        "then repeat the call, or read the order, until the hold ends",
        card="4000000000006983",
    ),
    Case(
        "pledged",
        "Capture an order with everyone in first",
        "The sandbox splits the order, and a mate’s card is held before the customer pays. Your server gets the same "
        "event as for any order. Capture once: the mate’s card is then charged, and you get the whole amount.",
        "your capture",
        has_pledge=True,
    ),
)
CASES = {case.name: case for case in _TABLE}


def title_of(name: str) -> str:
    """Return the title of a case. If the table no longer contains the case, return its name."""
    return CASES[name].title if name in CASES else name
