"""The provider port: what an adapter implements, and the types of its arguments and answers."""

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

# The reasons by which an adapter says that a card can no longer take a refund.
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
    """What a provider says about an operation. Silence and an error of its own (5xx) are UNKNOWN, never FAILED."""

    SUCCEEDED = "succeeded"
    DECLINED = "declined"
    NEEDS_ACTION = "needs_action"
    PENDING = "pending"
    FAILED = "failed"
    NOT_FOUND = "not_found"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Card:
    """The facts of a card that may be stored."""

    brand: str
    last4: str
    fingerprint: str


@dataclass(frozen=True)
class Outcome:
    """A provider's answer about one operation.

    `amount`, if given, is what was moved or held, in minor units: it may differ only by a partial hold. With NOT_FOUND,
    `is_vouched` says that the provider knows everything about the payment, and no such operation; without it, the
    operation may have arrived. Neither proves that a call which was sent is not carried out later.
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
    """Which amounts a card can be charged, in minor units: `minimum` to `maximum`, and a multiple of `step`."""

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
    """What the provider's card page needs: the order or share to pay, where to return, what to show around the fields.

    `amount` is in minor units; `account` is the merchant's at the provider, "" for ours. The page is in the language
    that is active when it is opened.
    """

    subject: UUID
    return_url: str
    amount: int
    currency: str
    account: str = ""
    page: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CardPage:
    """A card page under our own host: the adapter's template with its context, and what its CSP allows besides us.

    `allows` has origins by directive, such as `script-src`. The page is shown with what CardForm.page holds, and its
    script leads the browser to `return_url`, with `card_token` added to the query.
    """

    template: str
    context: dict[str, Any]
    allows: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class CardUse:
    """A single-use card token, and the address to which the payer returns if their bank asks them something."""

    token: str
    return_url: str = ""


@dataclass(frozen=True)
class PaymentRecord:
    """One payment in the provider's own books, with what is needed to restore our row.

    `subject` is the order or share that it was for, `reference` the provider's id if it was registered there, `place`
    the merchant's account there, "" for ours. `is_moved`: money is or was held by it, or taken. `amount` is what was
    asked for, in minor units.
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
    """How a dispute stands: open, or decided for the merchant or for the payer."""

    OPEN = "open"
    WON = "won"
    LOST = "lost"


@dataclass(frozen=True)
class DisputeLine:
    """A line of the provider's balance by which a dispute moved money: taken from us, or `is_back`, given back."""

    reference: str
    is_back: bool
    at: datetime


@dataclass(frozen=True)
class DisputeRecord:
    """One dispute in the provider's books: `reference` is its id there, `respond_by` when evidence must be in.

    `lines` say that and when it moved money: each moved the whole `amount`. Their own amounts are in the account's
    currency, and are no part of this. `unknown_status` is the provider's word for a status that the adapter does not
    know: such a dispute counts as open.
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
    """What a payment's card was charged, by whomever. `reference` is that of a succeeded capture's Outcome too."""

    reference: str
    amount: int
    currency: str
    at: datetime


@dataclass(frozen=True)
class RefundRecord:
    """One refund of a payment as it stands now, whoever made it. `reference` is that of its Outcome too.

    `verdict` is PENDING, SUCCEEDED or FAILED. `has_returned`: it had given the money back before it failed.
    `operation` is ours, None if others made it; `refund` or `share` is what ours was for, as far as the provider keeps
    that.
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
    """Everything that the provider's books have about one payment's money, each object as it is now.

    `is_held`: money is held on the card now, and not taken.
    """

    is_held: bool = False
    capture: CaptureRecord | None = None
    refunds: Sequence[RefundRecord] = ()
    disputes: Sequence[DisputeRecord] = ()


@dataclass(frozen=True)
class Entry:
    """A line of the balance that the provider keeps: what came in or, negative, went out, and the fee that it kept.

    `amount` and `fee` are in minor units of `currency`, which may be another one than the payment's; the balance has
    gained `amount - fee`. `payment` and `operation` are our ids of what it is about, `account` is the merchant's there,
    "" for ours. `payout` is the provider's id of the payout that it is part of, as far as that is known, and
    `available_at` when the money can be paid out, or reaches the bank account.
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
    """A message that a provider sends unasked: something about a payment of ours has changed.

    `kind` and `verdict` say what, as far as the message tells: then one that we know already needs no question.
    `operation` is ours, if the message names it.
    """

    id: str
    payment: UUID
    kind: str = ""
    verdict: Verdict = Verdict.UNKNOWN
    operation: UUID | None = None


class ForgedNotification(Exception):
    """A notification whose signature is missing, wrong or too old."""


class ProviderUnreachable(Exception):
    """The provider does not answer a question that moves no money."""


class Provider(Protocol):
    """Each call is idempotent under the operation's id, and returns or raises within `patience` seconds.

    Any of them may be accepted now and confirmed later: PENDING, until a look-up says what became of it.

    Rule provider.alike.
    """

    @property
    def key_life(self) -> timedelta:
        """How long the provider recognizes a repeated call by its id, counted from the first one.

        A later call would be carried out again. No call is carried out later than this after it was sent.
        """

    urls: str
    """The module of the adapter's own URLs, "" if it has none."""

    page_origins: tuple[str, ...]
    """The origins, besides our own, of pages that ask the payer for a card: forms of ours may lead there."""

    @property
    def payment_origins(self) -> tuple[str, ...]:
        """The origins, besides our own, that may use the browser's Payment Request API on our pages."""

    def amount_rule(self, currency: str) -> AmountRule:
        """Return which amounts a card can be charged in this currency, without a call."""

    def open_card_form(self, form: CardForm) -> str | CardPage:
        """Return the page that asks for the card and sends the payer back with `card_token`: its address, or itself.

        Raises ProviderUnreachable.
        """

    def register(self, payment: Payment, patience: float) -> Outcome:
        """Make a payment known before any money is asked for: SUCCEEDED with the provider's id of it as `reference`.

        The id is committed before `authorize` is called, so that an unknown outcome can be looked up by id. Repeated
        with the payment's own id as the key. A provider that needs no such step answers without a reference.
        """

    def authorize(self, operation: Operation, card: CardUse, patience: float) -> Outcome:
        """Hold the operation's amount on the card; NEEDS_ACTION names the page on which the payer confirms."""

    def capture(self, operation: Operation, patience: float) -> Outcome:
        """Take the held money."""

    def void(self, operation: Operation, patience: float) -> Outcome:
        """Release the hold; FAILED with reason `already_captured` if the money has been taken.

        A registered payment without a hold is ended, so that it cannot hold anything later.
        """

    def refund(self, operation: Operation, patience: float) -> Outcome:
        """Give back the operation's amount; PENDING until that is settled."""

    def look_up(self, operation: Operation, patience: float) -> Outcome:
        """Return what became of the operation, however old it is; NOT_FOUND if it never arrived.

        A capture that was refused because the money had been taken before is SUCCEEDED, with the amount taken.
        """

    def parse_notifications(self, request: HttpRequest) -> Iterable[Notification]:
        """Verify and read a message; return what it says of our payments, nothing if it is about something else.

        Raises ForgedNotification.
        """

    def movements(self, payment: Payment) -> Books:
        """Return what the provider's books have about a payment: our acts, acts in its dashboard, and disputes.

        It reads each object as it is now and never relies on the order of events. What it lacks may still arrive.
        Raises ProviderUnreachable.
        """

    def changed(self, since: datetime) -> Iterable[UUID]:
        """Return our ids of the payments, however old, whose books have changed from `since` on.

        Further payments do no harm. Raises ProviderUnreachable.
        """

    def payments(self, since: datetime) -> Iterable[PaymentRecord]:
        """Return every payment that was made under our name from `since` on, also those that our books lack.

        Asked only after a restore. Raises ProviderUnreachable.
        """

    def entries(self, since: datetime) -> Iterable[Entry]:
        """Return the lines of the provider's balances that were made, or paid out, from `since` on.

        None where it keeps no balance that merchants are paid out from. Raises ProviderUnreachable.
        """

    def missing(self) -> Iterable[str]:
        """Return what is missing there for taking money, in a sentence each with what to do about it.

        By questions that change nothing. Raises ProviderUnreachable.
        """


@cache
def current() -> Provider:
    """Return the provider that settings.PROVIDER names."""
    adapter: Provider = import_string(settings.PROVIDER)()
    return adapter
