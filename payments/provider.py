"""The provider port: the protocol that an adapter implements, and the types of its arguments and answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.utils.module_loading import import_string

from payments import money
from payments.models import BalanceEntry, Operation, Payment

# The reasons that an adapter reports if a card can no longer take a refund.
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
    """A provider's verdict on an operation. A missing answer or a 5xx answer is UNKNOWN, never FAILED."""

    SUCCEEDED = "succeeded"
    DECLINED = "declined"
    NEEDS_ACTION = "needs_action"
    PENDING = "pending"
    FAILED = "failed"
    NOT_FOUND = "not_found"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Card:
    """The card details that the service may store."""

    brand: str
    last4: str
    fingerprint: str


@dataclass(frozen=True)
class Outcome:
    """A provider's answer about one operation.

    `amount`, if not None, is the amount that was moved or held, in minor units. It can differ from the operation's
    amount only if a smaller amount was held. If the verdict is NOT_FOUND, `is_vouched` says whether the adapter has
    read everything that the provider stores about the payment. If it has, the operation is certainly not there.
    Otherwise, the operation might be there. In both cases, the provider can still carry out a call that was sent
    earlier.
    """

    verdict: Verdict
    reference: str = ""
    reason: str = ""
    action_url: str = ""
    card: Card | None = None
    amount: int | None = None
    is_vouched: bool = False


@dataclass(frozen=True)
class AmountRule:
    """The amounts that can be charged to a card, in minor units.

    These are the multiples of `step` from the minimum to the maximum.
    """

    minimum: int = 1
    step: int = 1
    maximum: int = money.MAXIMUM

    def __str__(self) -> str:
        of_step = f", a multiple of {self.step}" if self.step > 1 else ""
        return f"{self.minimum} to {self.maximum}{of_step}"

    def allows(self, amount: int) -> bool:
        """Return whether this amount can be charged to a card."""
        return self.minimum <= amount <= self.maximum and amount % self.step == 0


@dataclass(frozen=True)
class CardForm:
    """The data for a card page, on which a payer enters a card for an order or a share (`subject`).

    `amount` is in minor units. `account` is the merchant's account at the provider, or "" for our own account. `page`
    is the content around the card fields. The page is shown in the language that is active when it is opened.
    """

    subject: UUID
    return_url: str
    amount: int
    currency: str
    account: str = ""
    page: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CardPage:
    """A card page on our own host: the adapter's template and its context.

    `allows` maps directives of the page's Content Security Policy, such as `script-src`, to further origins that the
    page needs. The page shows the content of CardForm.page. Its script sends the browser to `return_url`, and adds
    `card_token` to the query.
    """

    template: str
    context: dict[str, Any]
    allows: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class CardUse:
    """A card token for a single use, and the address to which the payer returns if their bank asks them to confirm."""

    token: str
    return_url: str = ""


@dataclass(frozen=True)
class PaymentRecord:
    """One payment in the provider's own books, with the data that is needed to restore our row.

    `subject` is the order or share that was to be paid. `reference` is the provider's id, if the payment was
    registered there. `place` is the merchant's account there, or "" for our own account. `is_moved` is true if the
    payment has held or captured money. `amount` is the requested amount in minor units.
    """

    payment: UUID
    account: UUID
    subject: UUID | None
    amount: int
    currency: str
    is_moved: bool
    reference: str = ""
    place: str = ""
    card: Card | None = None


class DisputeStatus(StrEnum):
    """The status of a dispute: open, or decided for the merchant (won) or for the payer (lost)."""

    OPEN = "open"
    WON = "won"
    LOST = "lost"


@dataclass(frozen=True)
class DisputeLine:
    """A line in the provider's balance. It withdraws disputed money or, if `is_back`, returns it.

    `amount` is positive, in minor units, or None if the line moved the whole amount of the dispute.
    """

    reference: str
    is_back: bool
    at: datetime
    amount: int | None = None


@dataclass(frozen=True)
class DisputeRecord:
    """One dispute in the provider's books.

    `reference` is the provider's id of the dispute. `respond_by` is the deadline for evidence. `lines` show whether
    and when the dispute moved money. If the adapter does not know the provider's status
    of the dispute, this status is in `unknown_status`, and the dispute counts as open.
    """

    reference: str
    amount: int
    currency: str
    reason: str
    status: DisputeStatus
    opened_at: datetime
    respond_by: datetime | None = None
    lines: Sequence[DisputeLine] = ()
    unknown_status: str = ""


@dataclass(frozen=True)
class CaptureRecord:
    """The capture of a payment, made by this service or by someone else.

    `reference` is the same as in the Outcome of a succeeded capture.
    """

    reference: str
    amount: int
    currency: str
    at: datetime


@dataclass(frozen=True)
class RefundRecord:
    """The current state of one refund of a payment, made by this service or by someone else.

    `reference` is the same as in the refund's Outcome. `verdict` is PENDING, SUCCEEDED or FAILED. `has_returned` is
    true if the refund had paid the money back before it failed. `operation` is our operation, or None if someone else
    made the refund. `refund` or `share` is our id of the refund or share that the operation is for, if the provider
    has stored it.
    """

    reference: str
    amount: int
    currency: str
    verdict: Verdict
    at: datetime
    reason: str = ""
    has_returned: bool = False
    operation: UUID | None = None
    refund: UUID | None = None
    share: UUID | None = None


@dataclass(frozen=True)
class Books:
    """The current state of everything that the provider's books contain about the money of one payment.

    `is_held` is true if money is held on the card now and was not captured.
    """

    is_held: bool = False
    capture: CaptureRecord | None = None
    refunds: Sequence[RefundRecord] = ()
    disputes: Sequence[DisputeRecord] = ()


@dataclass(frozen=True)
class Entry:
    """A line in the balance that the provider keeps: an amount in (or out, if negative) and its fee.

    `amount` and `fee` are in minor units of `currency`, which can differ from the payment's currency. The line adds
    `amount - fee` to the balance. `payment` and `operation` are our ids of the objects that the line is about.
    `account` is the merchant's account at the provider, "" for our own. If known, `payout` is the provider's id of
    the payout that includes the line. `available_at` is when the money can be paid out, or when it reaches the bank
    account.
    """

    reference: str
    account: str
    kind: BalanceEntry.Kind
    amount: int
    fee: int
    currency: str
    at: datetime
    available_at: datetime | None = None
    payment: UUID | None = None
    operation: UUID | None = None
    payout: str = ""


@dataclass(frozen=True)
class Notification:
    """A message in which a provider reports that one of our payments has changed.

    `kind` and `verdict` describe the change, if the message contains them. If the service has already recorded this
    change, it does not ask the provider. `operation` is our operation, if the message contains its id.
    """

    id: str
    payment: UUID
    kind: str = ""
    verdict: Verdict = Verdict.UNKNOWN
    operation: UUID | None = None


class ForgedNotification(Exception):
    """The signature of a notification is missing, wrong or too old."""


class ProviderUnreachable(Exception):
    """The provider does not answer a request that does not move money."""


class Provider(Protocol):
    """The methods of an adapter.

    Each call is idempotent with the operation's id as key, and it returns or raises within `patience` seconds. The
    provider can accept any call and confirm it later. The outcome is then PENDING, until a look-up returns the final
    outcome.

    Rule provider.alike.
    """

    @property
    def key_life(self) -> timedelta:
        """Return how long after the first call the provider recognizes a repeated call.

        If a call is repeated later than this, it is carried out a second time. After the same time, the provider no
        longer carries out a delayed call.
        """

    urls: str
    """The module of the adapter's own URLs, "" if it has none."""

    page_origins: tuple[str, ...]
    """The origins, other than our own, of the pages that ask for a card. Our forms may redirect there."""

    @property
    def payment_origins(self) -> tuple[str, ...]:
        """Return the origins, in addition to our own, that may use the Payment Request API on our pages."""

    def amount_rule(self, currency: str) -> AmountRule:
        """Return the amounts that can be charged to a card in this currency, without calling the provider."""

    def open_card_form(self, form: CardForm) -> str | CardPage:
        """Return the page on which the payer enters the card, or its address.

        The page sends the payer back with `card_token`. Raises ProviderUnreachable.
        """

    def register(self, payment: Payment, patience: float) -> Outcome:
        """Register a payment at the provider before any money is requested.

        Return SUCCEEDED with the provider's id of the payment as `reference`. The caller commits the id before it
        calls `authorize`, so that it can later use the id to look up an unknown outcome. The idempotency key is the
        payment's own id. If the provider does not need this step, the outcome has no reference.
        """

    def authorize(self, operation: Operation, card: CardUse, patience: float) -> Outcome:
        """Hold the operation's amount on the card.

        If the payer must confirm the payment, return NEEDS_ACTION with the address of the page as `action_url`.
        """

    def capture(self, operation: Operation, patience: float) -> Outcome:
        """Capture the held money."""

    def void(self, operation: Operation, patience: float) -> Outcome:
        """Release the hold. Return FAILED with the reason `already_captured` if the money was captured.

        If the payment is registered but money is not held, end the payment, so that it cannot hold money later.
        """

    def refund(self, operation: Operation, patience: float) -> Outcome:
        """Refund the operation's amount. Return PENDING until the refund is settled."""

    def look_up(self, operation: Operation, patience: float) -> Outcome:
        """Return the outcome of an operation of any age, or NOT_FOUND if it never arrived.

        If a capture was refused because the money had already been captured, return SUCCEEDED with the captured
        amount.
        """

    def parse_notifications(self, request: HttpRequest) -> Iterable[Notification]:
        """Verify a message and return its notifications about our payments.

        The result is empty if the message is about something else. Raises ForgedNotification.
        """

    def movements(self, payment: Payment) -> Books:
        """Return the provider's books about a payment: our operations, those from its dashboard, and disputes.

        The adapter reads the current state of each object, so the order of events does not matter. A movement that is
        missing in the books now can still appear later. Raises ProviderUnreachable.
        """

    def changed(self, since: datetime) -> Iterable[UUID]:
        """Return our ids of the payments that have changed at the provider since `since`, whatever their age.

        The result can include payments that have not changed. Raises ProviderUnreachable.
        """

    def payments(self, since: datetime) -> Iterable[PaymentRecord]:
        """Return every payment that was made in our name since `since`, even if our database does not have it.

        The service calls this only after a restore. Raises ProviderUnreachable.
        """

    def entries(self, since: datetime) -> Iterable[Entry]:
        """Return the lines in the provider's balances that were created or paid out at `since` or later.

        The result is empty if the provider does not keep a balance from which it pays merchants. Raises
        ProviderUnreachable.
        """

    def missing(self) -> Iterable[str]:
        """Return a sentence for each missing part of the provider's setup, with the remedy.

        The adapter sends only requests that do not change data. Raises ProviderUnreachable.
        """


@cache
def current_provider() -> Provider:
    """Return the provider that settings.PROVIDER names."""
    adapter: Provider = import_string(settings.PROVIDER)()
    return adapter
