"""The sandbox bank's test cards, which are the only cards that it accepts (rule sandbox.cards)."""

from itertools import pairwise
from typing import NamedTuple

from django.utils.translation import gettext_noop as _

from config.lib import crypto


class TestCard(NamedTuple):
    """A test card: its number, a description of its effect, and the settings that cause this effect."""

    number: str
    effect: str
    brand: str = "Visa"
    decline_reason: str = ""
    asks_payer: bool = False
    refund_fails: bool = False
    seconds_a_call: float = 0
    loses_capture_answer: bool = False
    gets_no_capture: bool = False
    void_failures: int = 0
    disputed_in: float = 0  # seconds after the capture
    capture_settles_in: float = 0  # seconds after the capture is accepted
    refund_returns_in: float = 0  # seconds after the refund is settled

    @property
    def last4(self) -> str:
        return self.number[-4:]

    @property
    def fingerprint(self) -> str:
        """Return a digest of the card's number. It does not use a secret key, because the test numbers are public."""
        return crypto.digest(self.number)

    @property
    def spaced(self) -> str:
        ends = (0, 4, 10, 15) if self.brand == "American Express" else (0, 4, 8, 12, 16)
        return " ".join(self.number[start:end] for start, end in pairwise(ends))


_TABLE = (
    TestCard("4242424242424242", _("approved")),
    TestCard("5555555555554444", _("approved"), brand="Mastercard"),
    TestCard("378282246310005", _("approved"), brand="American Express"),
    TestCard("4000000000000002", _("declined"), decline_reason="declined"),
    TestCard("4000000000009995", _("declined: too little money"), decline_reason="insufficient_funds"),
    TestCard("4000000000000069", _("declined: the card has expired"), decline_reason="expired_card"),
    TestCard("4000002500003155", _("the bank asks you to confirm first"), asks_payer=True),
    TestCard("4000000000005126", _("approved, but a refund fails later"), refund_fails=True),
    TestCard("4000000000000341", _("approved slowly: each step takes 2 s"), seconds_a_call=2),
    TestCard("4000000000006975", _("captured, but the answer is lost"), loses_capture_answer=True),
    TestCard("4000000000006983", _("no capture arrives: the hold ends after 2 min"), gets_no_capture=True),
    TestCard(
        "4000000000008013", _("approved, but releasing the hold fails ten times first"), void_failures=10
    ),
    TestCard("4000000000000077", _("the capture is accepted, and confirmed 3 s later"), capture_settles_in=3),
    TestCard("4000000000000259", _("disputed 2 s after the capture"), disputed_in=2),
    TestCard("4000000000007726", _("a refund is settled, and fails 2 s afterwards"), refund_returns_in=2),
)
CARDS = {card.number: card for card in _TABLE}
BY_LAST4 = {card.last4: card for card in _TABLE}  # the bank stores only these digits, which are unique
