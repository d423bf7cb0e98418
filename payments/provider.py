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

# The reasons with which an adapter reports that a card can no longer take a refund.
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
    """A provider's verdict about an operation. A missing answer or a 5xx answer is UNKNOWN, never FAILED."""

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

    `amount`, if given, is the amount moved or held, in minor units. It can differ from the operation's amount
    only after a partial hold. With NOT_FOUND, `is_vouched` says that the provider knows everything about the
    payment and has no such operation. Without `is_vouched`, the operation might have arrived. Neither proves
    that a call which was sent is not carried out later.
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
    """The amounts that a card can be charged, in minor units: multiples of `step`, within both bounds."""

    minimum: int = 1
    step: int = 1
    maximum: int = money.MAXIMUM

    def __str__(self) -> str:
        of_step = f", a multiple of {self.step}" if self.step > 1 else ""
        return f"{self.minimum} to {self.maximum}{of_step}"

    def allows(self, amount: int) -> bool:
        """Return whether a card can be charged this amount."""
        return self.minimum <= amount <= self.maximum and amount % self.step == 0


@dataclass(frozen=True)
class CardForm:
    """The data for a card page: the order or share to pay, the return address, the content around the fields.

    `amount` is in minor units. `account` is the merchant's account at the provider, "" for our own. The page
    is in the language that is active when it is opened.
    """

    subject: UUID
    return_url: str
    amount: int
    currency: str
    account: str = ""
    page: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CardPage:
    """A card page on our own host: the adapter's template, its context, and other origins for its CSP.

    `allows` has origins by directive, such as `script-src`. The page shows the content of CardForm.page. Its
    script sends the browser to `return_url`, with `card_token` added to the query.
    """

    template: str
    context: dict[str, Any]
    allows: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class CardUse:
    """A single-use card token, and the payer's return address if their bank asks them to confirm."""

    token: str
    return_url: str = ""


@dataclass(frozen=True)
class PaymentRecord:
    """One payment in the provider's own books, with the data that is needed to restore our row.

    `subject` is the order or share that was to be paid. `reference` is the provider's id, if the payment was
    registered there. `place` is the merchant's account there, "" for our own. `is_moved` is true if the
    payment holds or held money, or captured it. `amount` is the requested amount in minor units.
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
    """A line of the provider's balance by which a dispute withdrew money or, if `is_back`, reinstated it."""

    reference: str
    is_back: bool
    at: datetime


@dataclass(frozen=True)
class DisputeRecord:
    """One dispute in the provider's books.

    `reference` is its id there. `respond_by` is the deadline for evidence. `lines` show whether and when the
    dispute moved money. Each line moved the whole `amount`. The lines' own amounts are in the account's
    currency and are not part of this record. `unknown_status` is the provider's status if the adapter does
    not know it. Such a dispute counts as open.
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
    """The charge of a payment's card, regardless of who made it.

    `reference` is the same as in the Outcome of a succeeded capture.
    """

    reference: str
    amount: int
    currency: str
    at: datetime


@dataclass(frozen=True)
class RefundRecord:
    """One refund of a payment in its current state, regardless of who made it.

    `reference` is the same as in the refund's Outcome. `verdict` is PENDING, SUCCEEDED or FAILED.
    `has_returned` is true if the refund had paid the money back before it failed. `operation` is our
    operation, or None if someone else made the refund. `refund` or `share` is the purpose of our operation,
    if the provider stores it.
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
    """Everything that the provider's books have about one payment's money, each object in its current state.

    `is_held` is true if money is now held on the card and not captured.
    """

    is_held: bool = False
    capture: CaptureRecord | None = None
    refunds: Sequence[RefundRecord] = ()
    disputes: Sequence[DisputeRecord] = ()


@dataclass(frozen=True)
class Entry:
    """A line of the balance that the provider keeps: money in, or out if negative, and the fee for it.

    `amount` and `fee` are in minor units of `currency`, which can differ from the payment's currency. The
    line adds `amount - fee` to the balance. `payment` and `operation` are our ids of the objects that the
    line is about. `account` is the merchant's account there, "" for our own. `payout` is the provider's id of
    the payout that includes the line, if it is known. `available_at` is when the money can be paid out, or
    when it reaches the bank account.
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
    """A message in which a provider reports, unasked, that one of our payments has changed.

    `kind` and `verdict` describe the change, if the message has them. The service does not ask the
    provider about a change that it knows already. `operation` is our operation, if the message names it.
    """

    id: str
    payment: UUID
    kind: str = ""
    verdict: Verdict = Verdict.UNKNOWN
    operation: UUID | None = None


class ForgedNotification(Exception):
    """A notification whose signature is missing, wrong or too old."""


class ProviderUnreachable(Exception):
    """The provider does not answer a request that moves no money."""


class Provider(Protocol):
    """The methods of an adapter.

    Each call is idempotent under the operation's id, and returns or raises within `patience` seconds. The
    provider can accept any call now and confirm it later. Until a look-up returns the final outcome, the call
    is PENDING.

    Rule provider.alike.
    """

    @property
    def key_life(self) -> timedelta:
        """Return how long the provider recognizes a repeated call by its id, counted from the first call.

        The provider would carry out a later call again. It carries out no call later than this after it was
        sent.
        """

    urls: str
    """The module of the adapter's own URLs, "" if it has none."""

    page_origins: tuple[str, ...]
    """The origins, besides our own, of pages that ask the payer for a card: forms of ours may lead there."""

    @property
    def payment_origins(self) -> tuple[str, ...]:
        """Return the origins, other than our own, that may use the Payment Request API on our pages."""

    def amount_rule(self, currency: str) -> AmountRule:
        """Return the amounts that a card can be charged in this currency, without calling the provider."""

    def open_card_form(self, form: CardForm) -> str | CardPage:
        """Return the page that asks for the card, or its address.

        The page sends the payer back with `card_token`. Raises ProviderUnreachable.
        """

    def register(self, payment: Payment, patience: float) -> Outcome:
        """Register a payment at the provider before any money is requested.

        Return SUCCEEDED with the provider's id of the payment as `reference`. The caller commits the id
        before it calls `authorize`, so that it can look up an unknown outcome by the id. A repeated call has
        the payment's own id as its key. If the provider needs no such step, the answer has no reference.
        """

    def authorize(self, operation: Operation, card: CardUse, patience: float) -> Outcome:
        """Hold the operation's amount on the card. NEEDS_ACTION names the page where the payer confirms."""

    def capture(self, operation: Operation, patience: float) -> Outcome:
        """Capture the held money."""

    def void(self, operation: Operation, patience: float) -> Outcome:
        """Release the hold. Return FAILED with reason `already_captured` if the money has been captured.

        A registered payment without a hold is ended, so that it cannot hold money later.
        """

    def refund(self, operation: Operation, patience: float) -> Outcome:
        """Refund the operation's amount. Return PENDING until the refund is settled."""

    def look_up(self, operation: Operation, patience: float) -> Outcome:
        """Return the outcome of the operation, however old it is, or NOT_FOUND if it never arrived.

        If a capture was refused because the money had already been captured, return SUCCEEDED with the
        captured amount.
        """

    def parse_notifications(self, request: HttpRequest) -> Iterable[Notification]:
        """Verify a message and return what it says about our payments.

        The result is empty if the message is about something else. Raises ForgedNotification.
        """

    def movements(self, payment: Payment) -> Books:
        """Return the provider's books about a payment: our operations, dashboard operations, and disputes.

        The adapter reads each object in its current state and never relies on the order of events. A fact
        that the books lack now can still arrive. Raises ProviderUnreachable.
        """

    def changed(self, since: datetime) -> Iterable[UUID]:
        """Return our ids of the payments, however old, whose books have changed since `since`.

        Additional payments in the result do no harm. Raises ProviderUnreachable.
        """

    def payments(self, since: datetime) -> Iterable[PaymentRecord]:
        """Return every payment made under our name since `since`, including those that our database lacks.

        The service calls this only after a restore. Raises ProviderUnreachable.
        """

    def entries(self, since: datetime) -> Iterable[Entry]:
        """Return the lines of the provider's balances that were made, or paid out, since `since`.

        The result is empty if the provider keeps no balance from which it pays merchants out. Raises
        ProviderUnreachable.
        """

    def missing(self) -> Iterable[str]:
        """Return what is missing at the provider for taking money: one sentence each, with the remedy.

        The adapter sends only requests that make no change. Raises ProviderUnreachable.
        """


@cache
def current_provider() -> Provider:
    """Return the provider that settings.PROVIDER names."""
    adapter: Provider = import_string(settings.PROVIDER)()
    return adapter
