"""The desk of a provider: the actions that a test carries out as the provider's payers, banks and staff.

Every provider's desk has the same actions.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from django.http import HttpRequest

from payments.models import Payment
from payments.provider import Provider


class Card(StrEnum):
    """A card. Its name describes how its bank behaves."""

    GOOD = "approved"
    DECLINED = "declined"
    NO_MONEY = "declined: too little money"
    EXPIRED = "declined: the card has expired"
    ASKS = "the bank asks the payer first"
    REFUND_FAILS = "a refund is accepted and fails"
    DISPUTED = "approved, to be disputed"


class CallFailure(StrEnum):
    """How a call fails."""

    SILENT = "the connection breaks before the call is carried out"
    DONE_SILENT = "the connection breaks after the call is carried out"
    ERROR = "the provider returns an error and does not carry out the call"
    DONE_ERROR = "the provider carries out the call and returns an error"
    REPLAYED_ERROR = "the provider always returns the same error for the key and does not carry out the call"


class Desk(Protocol):
    """A provider under test: its adapter, and the actions of its payers, its banks and the merchant's staff."""

    provider: Provider

    def token(self, card: Card, subject: UUID) -> str:
        """Return the token that the card page returns for this card."""

    def answer(self, payment: Payment, *, confirms: bool) -> None:
        """Answer the bank's challenge as the payer."""

    def make_calls_fail(self, verb: str, failure: CallFailure) -> None:
        """Make the next call of `verb` fail. The verb can also be `register`, `look_up` or `movements`."""

    def hold_less(self, amount: int) -> None:
        """Let the next authorization hold at most this amount."""

    def settle(self) -> None:
        """Settle all calls that the provider has accepted, as if enough time had passed."""

    def age_keys(self) -> None:
        """Make the provider forget every key."""

    def in_dashboard(self, kind: str, payment: Payment, amount: int) -> None:
        """Capture, void or refund a payment in the provider's dashboard, as the merchant's staff do."""

    def refund_outside(self, payment: Payment, amount: int, pending: bool = False) -> None:
        """Refund a payment as the merchant's staff do. The refund settles at once, or is pending until `settle`."""

    def return_refund(self, reference: str) -> None:
        """Return a settled refund to the merchant, as the cardholder's bank does."""

    def dispute(self, payment: Payment, amount: int | None = None) -> None:
        """Dispute a payment or part of it, as the payer's bank does. The card must be DISPUTED."""

    def decide(self, payment: Payment, *, is_won: bool) -> None:
        """Decide the open dispute of a payment."""

    def messages(self) -> Sequence[HttpRequest]:
        """Return the notifications that were sent since the last call."""

    def forged(self) -> HttpRequest:
        """Return a notification with the signature of another party."""
