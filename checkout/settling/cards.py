"""Reads the accounts of an order: the amount that each card bears, and every attempt to refund some of it.

A card bears the amount that was taken from it, minus the amounts that the card or its payer got back. Amounts are in
minor units of the order's currency. Rule money.borne.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, QuerySet

from checkout.models import Checkout, PaymentRequest
from checkout.states import PAID, Status
from config.lib.prepared import Prepared
from payments.models import Booking, Movement, Operation, Payment

Kind: TypeAlias = Movement.Kind
State: TypeAlias = Operation.State
Purpose: TypeAlias = Operation.Purpose
REFUSED = (State.FAILED, State.DECLINED)
SENT = (State.IN_FLIGHT, State.NEEDS_ACTION, State.UNKNOWN, State.PENDING)
DISPUTE_MOVEMENTS = (Kind.DISPUTE_WITHDRAWN, Kind.DISPUTE_REINSTATED)
# Movements that do not appear in the status of the order or of its shares.
HIDDEN_MOVEMENTS = (Kind.REFUND_RETURNED, *DISPUTE_MOVEMENTS)
# An attempt with one of these reasons ended before it was carried out.
NOT_CARRIED_OUT = ("withdrawn", "new_key")


class PartKey(NamedTuple):
    """Identifies a part of a refund, or the reimbursement for a share, and the card that gets the money."""

    payment_uuid: UUID
    refund_uuid: UUID | None
    share_uuid: UUID | None


@dataclass
class Part:
    """All attempts to refund one part of a refund, or to reimburse one share, and the results."""

    attempts: list[Operation] = field(default_factory=list)
    refunded: int = 0
    returned: int = 0
    settled: int = 0  # settled outside the service, and not refunded to the card
    settled_after_return: int = 0  # the part of `settled` that replaces a returned refund
    # Attempts that were returned, and attempts that were booked as settled outside until an operator reversed the
    # booking.
    returned_uuids: set[UUID] = field(default_factory=set)
    reversed_amount: int = 0  # settled outside, but an operator reversed the booking
    outstanding: int = 0  # returned and still owed to the card; an operator decides what happens

    @property
    def unconfirmed(self) -> int:
        """The amount of the refunds that were sent to the card and are not confirmed yet."""
        return sum(row.amount for row in self.attempts if row.state in SENT)

    @property
    def received(self) -> int:
        """The amount that the payer has received, on the card or outside the service."""
        return self.refunded - self.returned + self.settled

    @property
    def unreplaced(self) -> int:
        """The returned amount that was neither sent again nor settled outside the service."""
        resent = sum(
            row.amount for row in self.attempts if row.resends_id and row.state in (*SENT, State.SUCCEEDED)
        )
        return max(0, self.returned - resent - self.settled_after_return)

    @property
    def is_sent_again(self) -> bool:
        """Whether a returned amount was sent again and is not confirmed yet."""
        return any(row.resends_id and row.state in SENT for row in self.attempts)

    @property
    def executed(self) -> list[Operation]:
        """The attempts that were carried out or are being carried out."""
        return [
            row for row in self.attempts if row.state != State.PLANNED and row.reason not in NOT_CARRIED_OUT
        ]

    @property
    def last(self) -> Operation | None:
        """The newest attempt that was carried out or is being carried out."""
        return max(self.executed, key=lambda row: (row.created_at, row.pk), default=None)


@dataclass
class Card:
    """A captured card, and the amounts that were moved on it."""

    payment: Payment
    moved: int = 0  # sum of all movements: the amount that is still at the provider
    settled: int = 0  # settled outside the service
    unconfirmed: int = 0  # refunds that are not confirmed yet, including those that others made
    # The part of `unconfirmed` that the provider has accepted. The rest might never arrive.
    accepted: int = 0
    # Refunds that others made at the provider, confirmed or not. A refund that replaces a returned refund is not
    # counted.
    outside: int = 0
    outside_unconfirmed: int = 0  # the part of `outside` that is not confirmed yet
    disputed: int = 0  # withdrawn by disputes, and not reinstated
    outstanding: int = 0  # returned refunds that are still owed

    @property
    def borne(self) -> int:
        return self.moved - self.settled

    @property
    def free(self) -> int:
        """The amount that can still be refunded to the card."""
        return max(0, self.moved - self.unconfirmed)

    def owed(self, target: int) -> int:
        """Return the amount that must be refunded to the card so that the card bears only `target`.

        Returned refunds that wait for an operator's decision are not included.
        """
        return min(self.borne - self.unconfirmed - target - self.outstanding, self.free)


@dataclass
class Accounts:
    """The captured cards of an order, the refunds to these cards, the paid shares, and the bookings."""

    checkout: Checkout
    cards: dict[UUID, Card]
    parts: dict[PartKey, Part]
    shares: list[PaymentRequest]
    bookings: list[Booking]

    @property
    def lead(self) -> Card | None:
        return self.cards.get(self.checkout.payment_id) if self.checkout.payment_id else None

    def part(self, key: PartKey) -> Part:
        return self.parts.get(key) or Part()

    def reimbursement(self, share: PaymentRequest) -> tuple[PartKey, Part]:
        """Return the key of a share's reimbursement to the lead's card, and the attempts to make it."""
        key = PartKey(self.checkout.payment_id or UUID(int=0), None, share.pk)
        return key, self.part(key)

    def closed(self, share: PaymentRequest, payment_uuid: UUID | None = None) -> int:
        """Return the amount of a share that closings cover. The lead is not owed this amount.

        With `payment_uuid`, only the closings for money that this payment's card got back are counted.
        """
        return sum(
            row.amount
            for row in self.bookings
            if row.kind == Booking.Kind.CLOSING
            and row.share_uuid == share.pk
            and payment_uuid in (None, row.payment_id)
        )

    def owed_to_lead(self, share: PaymentRequest) -> int:
        """Return the amount of a paid share that the lead is still owed."""
        return share.amount - self.reimbursement(share)[1].received - self.closed(share)

    def target(self, card: Card) -> int:
        """Return the amount that a card should bear. It is 0 if the order is being refunded or was refunded.

        While the order is captured, the lead bears the amount that the mates have not paid. The merchant bears the
        amount that others refunded.
        """
        if self.checkout.status != Status.CAPTURED:
            return 0
        if card is not self.lead:
            return card.payment.amount - card.outside
        of_mates = sum(share.amount - self.closed(share, share.payment_id) for share in self.shares)
        return self.checkout.amount - of_mates - card.outside

    def of_refund(self, refund_uuid: UUID) -> dict[PartKey, Part]:
        return {key: part for key, part in self.parts.items() if key.refund_uuid == refund_uuid}


def read_accounts(checkout: Checkout, *, is_locked: bool = True) -> Accounts:
    """Read the accounts of a checkout.

    With `is_locked`, the refunds are locked too, so that the pump does not start to send a planned refund.
    """
    movements = _MOVEMENTS.all(checkout.pk)
    operations = (_LOCKED_REFUNDS if is_locked else _REFUNDS).all(checkout.pk)
    bookings = _BOOKINGS.all(checkout.pk)
    cards = {row.payment_id: Card(row.payment) for row in movements if row.kind == Kind.CAPTURED}
    accounts = Accounts(checkout, cards, {}, _paid_shares(checkout, cards), bookings)
    _add_operations(accounts, operations, movements)
    _add_movements(accounts, operations, movements)
    _add_bookings(accounts, operations, movements)
    _add_outstanding(accounts)
    return accounts


def _refunds(checkout_uuid: UUID) -> QuerySet[Operation]:
    rows = Operation.objects.filter(payment__checkout_uuid=checkout_uuid, kind=Operation.Kind.REFUND)
    return rows.select_related("resends", "payment").order_by("pk")


# These queries are prepared, because each call for a refund runs all of them. If Django built them each time, a refund
# call would take as long as nine calls to an empty view. The tests allow only six.
_REFUNDS = Prepared(_refunds, UUID)
_LOCKED_REFUNDS = Prepared(lambda pk: _refunds(pk).select_for_update(of=("self",), no_key=True), UUID)
_MOVEMENTS = Prepared(lambda pk: Movement.objects.filter(checkout_uuid=pk).select_related("payment"), UUID)
_BOOKINGS = Prepared(lambda pk: Booking.objects.filter(checkout_uuid=pk).select_related("payment"), UUID)


def _paid_shares(checkout: Checkout, cards: dict[UUID, Card]) -> list[PaymentRequest]:
    if not checkout.has_mates:
        return []
    return [row for row in checkout.payment_requests.order_by("position") if row.payment_id in cards]


def part_key_of(operation: Operation) -> PartKey | None:
    """Return the key of the part to which an attempt belongs.

    For a refund that others made, returns None. If it replaces one of our returned refunds, returns the key of our
    refund instead.
    """
    first = operation.resends or operation
    if first.refund_uuid is None and first.share_uuid is None:
        return None
    return PartKey(operation.payment_id, first.refund_uuid, first.share_uuid)


def _add_operations(accounts: Accounts, operations: Iterable[Operation], movements: list[Movement]) -> None:
    for operation in operations:
        key = part_key_of(operation)
        if key is not None:
            accounts.parts.setdefault(key, Part()).attempts.append(operation)
        card = accounts.cards.get(operation.payment_id)
        if card is not None and operation.state in SENT:
            card.unconfirmed += operation.amount
            card.accepted += operation.amount if operation.state == State.PENDING else 0
            card.outside += operation.amount if key is None else 0
            card.outside_unconfirmed += operation.amount if key is None else 0


def _add_movements(accounts: Accounts, operations: Iterable[Operation], movements: list[Movement]) -> None:
    keys = {operation.pk: part_key_of(operation) for operation in operations}
    for row in movements:
        card = accounts.cards.get(row.payment_id)
        if card is None:
            continue
        card.moved += row.amount
        if row.kind in DISPUTE_MOVEMENTS:
            card.disputed -= row.amount
        elif row.kind != Kind.CAPTURED:
            key = keys.get(row.operation_id) if row.operation_id else None
            if key is None:
                card.outside -= row.amount
            elif row.kind == Kind.REFUNDED:
                accounts.parts[key].refunded -= row.amount
            elif row.operation_id:
                accounts.parts[key].returned += row.amount
                accounts.parts[key].returned_uuids.add(row.operation_id)


def _add_bookings(accounts: Accounts, operations: Iterable[Operation], movements: list[Movement]) -> None:
    returned = {row.operation_id for row in movements if row.kind == Kind.REFUND_RETURNED}
    keys = {operation.pk: part_key_of(operation) for operation in operations}
    for row in accounts.bookings:
        if row.operation_id is None:  # this booking is a closing
            continue
        if row.payment_id in accounts.cards:
            accounts.cards[row.payment_id].settled += row.amount
        part = accounts.parts.get(keys.get(row.operation_id) or PartKey(row.payment_id, None, None))
        if part is not None:
            part.settled += row.amount
            part.settled_after_return += row.amount if row.operation_id in returned else 0
            if row.reverses_id:
                part.reversed_amount -= row.amount
                part.returned_uuids.add(row.operation_id)


def _add_outstanding(accounts: Accounts) -> None:
    """Set the returned amounts that are still owed.

    A returned amount is not owed if the payer got it in a lost dispute.
    """
    for key, part in accounts.parts.items():
        card = accounts.cards.get(key.payment_uuid)
        if card is not None:
            owed = card.borne - card.unconfirmed - accounts.target(card) - card.outstanding
            # In a refunded order, an operator sends the amount of a reversed booking again. In any other order,
            # `settle` plans it again.
            is_over = accounts.checkout.status == Status.REFUNDED
            returned = part.unreplaced + (part.reversed_amount if is_over else 0)
            part.outstanding = max(0, min(returned, owed))
            card.outstanding += part.outstanding


def read_accounts_unlocked(checkout: Checkout) -> Accounts | None:
    """Read a checkout's accounts for a page, without a lock. Return None if the page does not need them.

    The page needs the accounts if the statuses do not show where the money is. This is the case if others made a
    refund, if a refund was returned, if a dispute moved money, or if there is a booking.
    """
    if checkout.status not in PAID:
        return None
    row: Any = checkout if hasattr(checkout, "needs_accounts") else _read_needs_accounts(checkout)
    return read_accounts(checkout, is_locked=False) if row.needs_accounts else None


def with_needs_accounts(rows: QuerySet[Checkout, Any]) -> QuerySet[Checkout, Any]:
    """Add `needs_accounts` to each checkout: whether `read_accounts_unlocked` must read its accounts."""
    checkout_uuid = OuterRef("pk")
    moved = Exists(Movement.objects.filter(checkout_uuid=checkout_uuid, kind__in=HIDDEN_MOVEMENTS))
    booked = Exists(Booking.objects.filter(checkout_uuid=checkout_uuid))
    by_others = Exists(
        Operation.objects.filter(payment__checkout_uuid=checkout_uuid, purpose=Purpose.OUTSIDE)
    )
    return rows.annotate(needs_accounts=ExpressionWrapper(moved | booked | by_others, BooleanField()))


def _read_needs_accounts(checkout: Checkout) -> Any:
    return with_needs_accounts(Checkout.objects.filter(pk=checkout.pk).only("pk")).get()


def is_refunded_by_others(checkout: Checkout) -> bool:
    """Return whether others have refunded, or tried to refund, some of an order at the provider.

    If so, the pay links of the order have ended. If the row comes from a query with `with_needs_accounts` and did not
    need accounts, there is no further query.
    """
    if not getattr(checkout, "needs_accounts", True):
        return False
    return Operation.objects.filter(payment__checkout_uuid=checkout.pk, purpose=Purpose.OUTSIDE).exists()


def has_unrefunded_amount(checkout: Checkout, *, is_locked: bool = True) -> bool:
    """Return whether any card of a checkout bears an amount that is not being refunded."""
    return any(
        card.borne > card.unconfirmed for card in read_accounts(checkout, is_locked=is_locked).cards.values()
    )


def can_refund_to_lead(checkout: Checkout, amount: int) -> bool:
    """Return whether this amount can be refunded to the lead's card in addition to all that the card is owed.

    Must be called with the checkout locked.
    """
    accounts = read_accounts(checkout)
    lead = accounts.lead
    owed = sum(
        accounts.owed_to_lead(share) - accounts.reimbursement(share)[1].unconfirmed
        for share in accounts.shares
    )
    return lead is not None and lead.free - max(0, owed) >= amount


def returned_refund_on(payment: Payment, *, at_least: int) -> Operation | None:
    """Return a returned refund of a payment if at least this amount of it is still owed, else None."""
    checkout = Checkout.objects.get(pk=payment.checkout_uuid)
    accounts = read_accounts(checkout)
    for key, part in accounts.parts.items():
        if key.payment_uuid == payment.pk and part.outstanding >= at_least:
            return next(
                row for row in part.attempts if row.movements.filter(kind=Kind.REFUND_RETURNED).exists()
            )
    return None
