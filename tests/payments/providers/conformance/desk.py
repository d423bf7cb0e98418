"""The desk of a provider: the actions that tests carry out as its payers, banks and staff.

The actions are the same for every provider.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from django.http import HttpRequest

from payments.models import Payment
from payments.provider import Provider


class Card(StrEnum):
    """A card, named after the behaviour of its bank."""

    GOOD = "approved"
    DECLINED = "declined"
    NO_MONEY = "declined: too little money"
    EXPIRED = "declined: the card has expired"
    ASKS = "the bank asks the payer first"
    REFUND_FAILS = "a refund is accepted and fails"
    DISPUTED = "approved, to be disputed"


class CallFailure(StrEnum):
    """The way in which a call fails."""

    SILENT = "the connection breaks before the call is carried out"
    DONE_SILENT = "the connection breaks after the call is carried out"
    ERROR = "the provider returns an error and does not carry out the call"
    DONE_ERROR = "the provider carries out the call and returns an error"
    REPLAYED_ERROR = "the provider always returns the same error for the key and does not carry out the call"


class Desk(Protocol):
    """A provider under test: its adapter, and the actions of its payers, banks and staff."""

    provider: Provider

    def token(self, card: Card, subject: UUID) -> str:
        """Return the token that the card page returns for this card."""

    def answer(self, payment: Payment, *, confirms: bool) -> None:
        """Answer the bank's challenge as the payer."""

    def make_calls_fail(self, verb: str, failure: CallFailure) -> None:
        """Make the next call of `verb` fail. `verb` can also be `register`, `look_up` or `movements`."""

    def hold_less(self, amount: int) -> None:
        """Make the next authorization hold no more than this amount."""

    def settle(self) -> None:
        """Settle all calls that the provider has accepted, as if enough time had passed."""

    def age_keys(self) -> None:
        """Make the provider forget every key."""

    def in_dashboard(self, kind: str, payment: Payment, amount: int) -> None:
        """Capture, void or refund as the merchant's staff do in the provider's own dashboard."""

    def refund_outside(self, payment: Payment, amount: int, pending: bool = False) -> None:
        """Refund as the merchant's staff do: settled at once, or pending until `settle`."""

    def return_refund(self, reference: str) -> None:
        """Return a settled refund, as the cardholder's bank does."""

    def dispute(self, payment: Payment, amount: int | None = None) -> None:
        """Dispute a payment or a part of it, as the payer's bank does. The card must be DISPUTED."""

    def decide(self, payment: Payment, *, is_won: bool) -> None:
        """Decide the open dispute of a payment."""

    def messages(self) -> Sequence[HttpRequest]:
        """Return the notifications that were sent since the last call."""

    def forged(self) -> HttpRequest:
        """Return a notification that another party has signed."""
