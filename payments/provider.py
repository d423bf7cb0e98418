"""The port: what we ask of whoever moves the cards' money."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.utils.module_loading import import_string

from payments.models import Operation, Payment

# The reason of an UNKNOWN that was an answer all the same: an error of the provider's own, HTTP 5xx.
SERVER_ERROR = "server_error"
SERVER_ERROR_AFTER_SILENCE = "server_error_after_silence"

# The reasons by which an adapter says that the card of a refund can take nothing any more.
CARD_CANNOT_TAKE_IT = frozenset(
    {
        "card_account_closed",
        "account_closed",
        "card_closed",
        "expired_or_canceled_card",
        "lost_or_stolen_card",
    }
)


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
    """A provider's answer about one operation.

    An `amount` that is given is what was moved or held: less than was asked for is a partial hold, and no
    other may differ. `is_vouched` goes with NOT_FOUND: whoever looked knows all that there is of the payment,
    so that the operation may be begun anew under another key; without it, nobody knows.
    """

    verdict: Verdict
    reference: str = ""
    reason: str = ""
    action_url: str = ""
    card: Card | None = None
    amount: int | None = None
    is_vouched: bool = False


@dataclass(frozen=True)
class CardForm:
    """What the provider's card page needs: whose money, where to return, what to show around the fields.

    The page speaks the language that is active when it is asked for.
    """

    subject: UUID
    return_url: str
    page: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CardUse:
    """A single-use card token, and where the payer comes back to if the provider must ask them something."""

    token: str
    return_url: str = ""


@dataclass(frozen=True)
class Record:
    """One operation as the provider's own books have it."""

    key: UUID
    kind: str
    verdict: Verdict
    payment: UUID
    account: UUID
    amount: int
    currency: str


class DisputeStatus(StrEnum):
    """How a dispute stands: open, or decided for the merchant or for the payer."""

    OPEN = "open"
    WON = "won"
    LOST = "lost"


@dataclass(frozen=True)
class DisputeRecord:
    """One dispute about a payment as the provider has it; its id there, and until when evidence may be sent."""

    reference: str
    amount: int
    currency: str
    reason: str
    status: DisputeStatus
    opened_at: datetime
    respond_by: datetime | None = None


@dataclass(frozen=True)
class Notification:
    """What a provider tells us unasked: its record as it stands now, or the payment that is disputed."""

    id: str
    record: Record | None = None
    disputed: UUID | None = None


class ForgedNotification(Exception):
    """A message that the provider has not signed, or not lately."""


class ProviderUnreachable(Exception):
    """The provider does not answer just now; nothing of ours depends on what it would have said."""


class Provider(Protocol):
    """Every call is idempotent under the operation's id and returns or raises within `patience` seconds.

    Any of them may be accepted now and confirmed later: PENDING, until a look-up says what became of it.
    """

    @property
    def key_life(self) -> timedelta:
        """How long a call under the same id is known for a repeated one; later it would be done anew."""

    payment_origins: tuple[str, ...]
    """Whose parts of our pages may ask the browser for a payment, beside ourselves."""

    def minimum_charge(self, currency: str) -> int:
        """Return the least that a card can be charged, in minor units. Asks nobody."""

    def open_card_form(self, form: CardForm) -> str:
        """Return the address of the page that asks for the card and comes back with `card_token`.

        Raises ProviderUnreachable.
        """

    def authorize(self, operation: Operation, card: CardUse, patience: float) -> Outcome:
        """Hold the operation's amount on the card; NEEDS_ACTION with the page on which the payer confirms."""

    def capture(self, operation: Operation, patience: float) -> Outcome:
        """Take what is held."""

    def void(self, operation: Operation, patience: float) -> Outcome:
        """Release what is held; FAILED with reason `already_captured` when there is nothing to release."""

    def refund(self, operation: Operation, patience: float) -> Outcome:
        """Give back what was taken; PENDING until it is settled."""

    def look_up(self, operation: Operation, patience: float) -> Outcome:
        """Say what became of the operation, however old; NOT_FOUND if it never arrived.

        A capture that was refused since the money had been taken before is SUCCEEDED, with the amount taken.
        """

    def parse_notification(self, request: HttpRequest) -> Notification:
        """Verify and read a message of the provider. Raises ForgedNotification."""

    def disputes(self, payment: Payment) -> Iterable[DisputeRecord]:
        """Return every dispute about a payment. Raises ProviderUnreachable."""

    def disputed(self, since: datetime) -> Iterable[UUID]:
        """Return our ids of the payments that a dispute was opened about, or decided, from `since` on.

        However old the payment is, and the dispute.
        """

    def records(self, since: datetime) -> Iterable[Record]:
        """Return every operation of the provider's books that is new or has changed since, as it stands now.

        However old it is: a refund that comes back after weeks is among them, whoever was told of it. More than
        these do no harm.
        """


@cache
def current() -> Provider:
    """Return the provider that settings.PROVIDER names."""
    adapter: Provider = import_string(settings.PROVIDER)()
    return adapter
