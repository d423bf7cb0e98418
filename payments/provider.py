"""The port: what we ask of whoever moves the cards' money."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from payments.models import Operation


class Verdict(StrEnum):
    """What a provider says of an operation. Silence is UNKNOWN, never FAILED."""

    SUCCEEDED = "succeeded"
    DECLINED = "declined"
    NEEDS_ACTION = "needs_action"
    PENDING = "pending"
    FAILED = "failed"
    NOT_FOUND = "not_found"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Card:
    """What may be kept of a card."""

    brand: str
    last4: str
    fingerprint: str


@dataclass(frozen=True)
class Outcome:
    """A provider's answer about one operation."""

    verdict: Verdict
    reference: str = ""
    reason: str = ""
    action_url: str = ""
    card: Card | None = None


@dataclass(frozen=True)
class CardForm:
    """What the provider's card page needs: whose money, where to return, what to show around the fields."""

    subject: UUID
    return_url: str
    page: dict[str, Any] = field(default_factory=dict)


class Provider(Protocol):
    """Every call is idempotent under the operation's id, and answers within the caller's patience."""

    def open_card_form(self, form: CardForm) -> str:
        """Return the address of the page that asks for the card and comes back with `card_token`."""

    def authorize(self, operation: Operation, card_token: str) -> Outcome:
        """Hold the operation's amount on the card behind the single-use token."""

    def capture(self, operation: Operation) -> Outcome:
        """Take what is held."""

    def void(self, operation: Operation) -> Outcome:
        """Release what is held; FAILED with reason `already_captured` when there is nothing to release."""

    def refund(self, operation: Operation) -> Outcome:
        """Give back what was taken; PENDING until it is settled."""

    def look_up(self, operation: Operation) -> Outcome:
        """Say what became of an earlier call under the operation's id; NOT_FOUND if it never arrived."""


@cache
def current() -> Provider:
    """Return the provider that settings.PROVIDER names."""
    adapter: Provider = import_string(settings.PROVIDER)()
    return adapter
