"""The desk of a provider: what the tests do there as payers, banks and staff, whichever provider it is."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from django.http import HttpRequest

from payments.models import Payment
from payments.provider import Provider


class Card(StrEnum):
    """A card by what its bank does."""

    GOOD = "approved"
    DECLINED = "declined"
    NO_MONEY = "declined: too little money"
    EXPIRED = "declined: the card has expired"
    ASKS = "the bank asks the payer first"
    REFUND_FAILS = "a refund is accepted and fails"
    DISPUTED = "approved, to be disputed"


class Goes(StrEnum):
    """How a call goes wrong."""

    SILENT = "the connection breaks before it is done"
    DONE_SILENT = "the connection breaks when it is done"
    ERROR = "it is answered by an error of the provider's own, and nothing is done"
    DONE_ERROR = "it is done, and answered by an error of the provider's own"
    REPLAYED_ERROR = "its key is answered by the same error for ever, and nothing is done"


class Desk(Protocol):
    """A provider of the tests, as its adapter and everybody around it meet it."""

    provider: Provider

    def token(self, card: Card, subject: UUID) -> str:
        """Return what the card page sends back for this card."""

    def answer(self, payment: Payment, *, confirms: bool) -> None:
        """Answer the bank's question as the payer."""

    def go_wrong(self, verb: str, goes: Goes) -> None:
        """Let the next call of this verb (or of `register`, `look_up`, `movements`) go wrong."""

    def hold_less(self, amount: int) -> None:
        """Let the next authorization hold no more than this."""

    def settle(self) -> None:
        """Let the time come for everything that was accepted."""

    def age_keys(self) -> None:
        """Let the provider forget every key."""

    def in_dashboard(self, kind: str, payment: Payment, amount: int) -> None:
        """Capture, void or refund as the merchant's staff do in the provider's own dashboard."""

    def refund_outside(self, payment: Payment, amount: int, pending: bool = False) -> None:
        """Refund as the merchant's staff do: it is settled at once, or pending until `settle`."""

    def return_refund(self, reference: str) -> None:
        """Let a settled refund come back, as the cardholder's bank does."""

    def dispute(self, payment: Payment, amount: int | None = None) -> None:
        """Dispute a payment as its payer's bank: a part of it, or all of it, on a card that is one to be disputed."""

    def decide(self, payment: Payment, *, is_won: bool) -> None:
        """Decide the open dispute of a payment."""

    def messages(self) -> Sequence[HttpRequest]:
        """Return the notifications that were sent since this was asked last."""

    def forged(self) -> HttpRequest:
        """Return a notification that somebody else has signed."""
