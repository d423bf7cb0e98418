"""An order as an operator sees it: where the money is, what waits, and the operations at the bank.

Rule operator.page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import Min, Model
from django.http import HttpRequest
from django.utils.functional import cached_property

from checkout import current_checkouts
from checkout.models import Bill, Checkout, PaymentRequest, Refund
from checkout.remedies import outstanding_refund, reasons
from checkout.settling.cards import Card
from checkout.states import SHARE_PAID, Status
from config.lib.admin import columns
from hosted_page import summary
from payments import money, planning
from payments.models import Booking, Dispute, Operation, Payment
from portal.backoffice import ages, badges, cases, frame, order_badges, overview_figures
from portal.backoffice.operator_actions import RUN_PERMISSION
from portal.badges import DISPUTE, REFUND, REFUND_FAILED, REFUND_RETURNED, Badge, of_delivery
from portal.orders.disputed import ORDER_BADGES
from portal.orders.order import Order
from webhooks.models import Delivery, Subscription

MAXIMUM = 50  # the maximum number of rows in a table on the page; the admin's list shows all of them
HELD_SENTENCE = "The bank holds {amount}{card}. It can be captured until {until}; then it is released."
RELEASED_SENTENCE = "No money has moved to the merchant: the hold of {amount}{card} was released."
RELEASING_SENTENCE = "No money has moved to the merchant: the hold of {amount}{card} is being released."
UNKNOWN: dict[str, str] = {
    Operation.Kind.AUTHORIZE: "The bank might hold {amount}. It has not answered yet.",
    Operation.Kind.CAPTURE: "The bank might have taken {amount}. It has not answered yet.",
}
OTHER_PLACES: dict[str, str] = {
    Operation.Kind.CAPTURE: "If the capture succeeded, the merchant has the money."
}
PLACES = {Status.AUTHORIZED: "hold", Status.CAPTURED: "shop"}
TIMES = {
    "created_at": "Created",
    "authorized_at": "Held",
    "captured_at": "Captured",
    "voided_at": "Voided",
    "expired_at": "Expired",
    "last_refund_at": "Refunded",
}
OUTSIDE = "Refund in the provider’s own dashboard"


@dataclass(frozen=True)
class Line:
    """A line in one of the page's tables. `title` names the row, such as "Refund R-1"."""

    row: Any
    title: str
    badge: Badge
    amount: str = ""
    at: datetime | None = None
    card: str = ""
    note: str = ""

    @property
    def address(self) -> str:
        """Return the address of the row's page."""
        return columns.page_address(self.row._meta.label_lower, self.row.pk)


class Page:
    """The content of an order's page for one operator. The rows for a section are read when they are first used.

    The checkout must have been read with `current_checkouts.with_read_at`.
    """

    def __init__(self, checkout: Checkout, request: HttpRequest) -> None:
        self.checkout, self.request, self.now = checkout, request, current_checkouts.read_at(checkout)
        self.amount = self._display(checkout.amount)
        self.badge = badges.of_checkout(checkout)
        self.order = Order(checkout)

    @property
    def may_run(self) -> bool:
        """Return whether this operator may look up an operation at the provider."""
        return bool(self.request.user.has_perm(RUN_PERMISSION))

    @cached_property
    def bill(self) -> Sequence[summary.Line]:
        """Return the ordered items, line by line."""
        if not self._may_see(Bill):
            return []
        return [summary.line_of(item, self.checkout.currency) for item in self.checkout.bill]

    @cached_property
    def disputes(self) -> Sequence[Dispute]:
        return self.order.disputes if self._may_see(Dispute) else []

    @cached_property
    def bookings(self) -> Sequence[Booking]:
        return self.order.bookings if self._may_see(Booking) else []

    @cached_property
    def extra_badges(self) -> Sequence[Badge]:
        """Return the additional badges: an operation in doubt, the latest dispute, a failed or returned refund."""
        in_doubt = any(row.state in order_badges.STATES for row in self._operations)
        extra_badges = [order_badges.BADGES[order_badges.UNCLEAR]] if in_doubt else []
        extra_badges += [ORDER_BADGES[Dispute.Status(row.status)] for row in self.disputes[:1]]
        if self._refunds and all(row.status == Refund.Status.FAILED for row in self._refunds):
            extra_badges.append(REFUND_RETURNED if self.checkout.status == Status.REFUNDED else REFUND_FAILED)
        return extra_badges

    @cached_property
    def cases(self) -> Sequence[cases.Case]:
        """Return the open discrepancies about this order, with the actions that the operator may take."""
        if not frame.may_see_operations(self.request):
            return []
        return cases.open_cases(self.now, self.request, self.checkout.pk)

    @cached_property
    def unresolved(self) -> Sequence[overview_figures.UnresolvedOperation]:
        """Return the operations whose outcome is still unknown."""
        unclear = [row for row in self._operations if badges.is_unresolved(row)]
        order_id, hold_ends = self.checkout.merchant_order_id, self.checkout.capture_before
        return [overview_figures.describe_unresolved(row, order_id, self.now, hold_ends) for row in unclear]

    @cached_property
    def _operations(self) -> Sequence[Operation]:
        if not self._may_see(Operation):
            return []
        rows = planning.with_first_sending(Operation.objects.filter(payment__checkout_uuid=self.checkout.pk))
        rows = outstanding_refund.with_refund_facts(rows)
        return list(rows.select_related("payment__merchant").order_by("pk")[:MAXIMUM])

    @cached_property
    def operations(self) -> Sequence[Line]:
        """Return the operations at the bank, oldest first."""
        return [self._describe_operation(row) for row in self._operations]

    @cached_property
    def payments(self) -> Sequence[Line]:
        """Return the cards, each with the state of its payment."""
        if not self._may_see(Payment):
            return []
        rows = Payment.objects.filter(checkout_uuid=self.checkout.pk).order_by("pk")[:MAXIMUM]
        return [
            Line(row, card_of(row), badges.PAYMENT[row.status], self._display(row.amount), row.created_at)
            for row in rows
        ]

    @cached_property
    def _shares(self) -> Sequence[PaymentRequest]:
        if not self._may_see(PaymentRequest):
            return []
        return sorted(self.order.shares, key=lambda row: row.position)

    @cached_property
    def shares(self) -> Sequence[Line]:
        """Return the mates' shares, without names or phone numbers."""
        return [
            Line(
                row,
                f"Share {row.position}",
                badges.SHARE[row.status],
                self._display(row.amount),
                row.paid_at or row.ended_at or row.created_at,
            )
            for row in self._shares
        ]

    @property
    def shares_paid(self) -> str:
        paid = sum(row.status in SHARE_PAID for row in self._shares)
        return f"{paid} of {len(self._shares)} paid"

    @cached_property
    def _refunds(self) -> Sequence[Refund]:
        if not self._may_see(Refund):
            return []
        return list(self.checkout.refunds.order_by("created_at")[:MAXIMUM])

    @cached_property
    def refunds_and_disputes(self) -> Sequence[Line]:
        """Return the refunds, the disputes, and the bookings that operators made."""
        lines = [self._describe_refund(row) for row in self._refunds]
        lines += [self._describe_dispute(row) for row in self.disputes]
        return lines + [self._describe_booking(row) for row in self.bookings]

    @property
    def refunds_and_disputes_title(self) -> str:
        """Return the title of the table with refunds, disputes and bookings.

        The title does not say that money was returned, because a refund can fail.
        """
        return "Refunds, disputes" if self.disputes else "Refunds"

    @cached_property
    def deliveries(self) -> Sequence[Line]:
        """Return the webhook deliveries about the order, oldest first."""
        if not self._may_see(Delivery):
            return []
        rows = sorted(self.order.deliveries.values(), key=lambda row: row.pk)[:MAXIMUM]
        return [self._describe_delivery(row) for row in rows]

    @property
    def no_delivery_reason(self) -> str:
        """Return a sentence that says why, most likely, no webhook was sent about the order."""
        first = Subscription.objects.filter(merchant=self.checkout.merchant_id).aggregate(Min("created_at"))
        since = first["created_at__min"]
        if since is None:
            return "No endpoint is set."
        is_too_late = since > self.checkout.updated_at
        return "No endpoint was set then." if is_too_late else "No endpoint was notified of it."

    @property
    def times(self) -> Sequence[tuple[str, datetime]]:
        """Return the times of the order's events, such as its creation, hold and capture, with their labels."""
        is_held = self.checkout.status == Status.AUTHORIZED
        names = TIMES | ({"capture_before": "Hold ends"} if is_held else {})
        return [(words, at) for name, words in names.items() if (at := getattr(self.checkout, name))]

    @property
    def age(self) -> str:
        """Return the time since the order was created, in words."""
        return ages.in_words(self.now - self.checkout.created_at)

    @property
    def place(self) -> str:
        """Return where the money is: "hold", "shop" or "card", or "" if it has not moved or is elsewhere."""
        is_elsewhere = self._cards and any(card.settled or card.outside for card in self._cards)
        if (
            is_elsewhere
            or self._returned_amount
            or self._refused_sentence
            or any(row.status != Dispute.Status.WON for row in self.disputes)
        ):
            return ""
        return PLACES.get(Status(self.checkout.status), "card" if self.checkout.authorized_at else "")

    @property
    def money_sentence(self) -> str:
        """Return a sentence that says where the money is."""
        for row in self.disputes[:1]:
            disputed_amount = self._display(row.amount)
            if row.status == Dispute.Status.OPEN:
                return (
                    f"A payer disputes {disputed_amount}: their bank keeps it until the dispute is decided."
                )
            if row.status == Dispute.Status.LOST:
                return f"A dispute is lost: the payer has {disputed_amount} back."
        if self._returned_amount:
            return f"A refund was returned: the provider has {self._display(self._returned_amount)} of it."
        outside_amount = (
            sum(card.outside for card in self._cards) if self.checkout.status == Status.CAPTURED else 0
        )
        outside = (
            f" {self._display(outside_amount)} was refunded in the provider’s dashboard."
            if outside_amount
            else ""
        )
        by_status = _sentence_by_status(self.checkout, self.amount) + outside
        unknown = UNKNOWN.get(self._unknown_kind, "").format(amount=self.amount)
        return unknown or self._refused_sentence or by_status

    @property
    def _refused_sentence(self) -> str:
        """Return sentences about the cards that get a refund, or "" if no card has refused its part."""
        is_refunding = self.checkout.status == Status.REFUNDING and self._may_see(Operation)
        parts = self.order.sent_parts if is_refunding else []
        refused = [part for part in parts if part.state == Operation.State.FAILED]
        reached = [card_of(part.payment) for part in parts if part.state == Operation.State.SUCCEEDED]
        missing = " and ".join(
            f"{self._display(part.amount)} has not reached {card_of(part.payment)}" for part in refused
        )
        rest = f" {' and '.join(reached)} {'has' if len(reached) == 1 else 'have'} the money back."
        return f"{missing}.{rest if reached else ''}" if refused else ""

    @property
    def _cards(self) -> Sequence[Card]:
        """Return what each card bears.

        The list is empty if the statuses of the order and its shares already say where all money is.
        """
        accounts = self.order.accounts if self._may_see(Booking) else None
        return list(accounts.cards.values()) if accounts else []

    @property
    def _returned_amount(self) -> int:
        """Return how much money from returned refunds must still be refunded again, in minor units."""
        is_refunded = self.checkout.status == Status.REFUNDED
        return sum(max(0, card.borne) for card in self._cards) if is_refunded else 0

    @property
    def other_place(self) -> str:
        """Return a sentence about where else the money of a hold can be, if the outcome of the capture is unknown.

        Return "" if the outcome is known.
        """
        return OTHER_PLACES.get(self._unknown_kind, "") if self.place == "hold" else ""

    @property
    def _unknown_kind(self) -> str:
        """Return "authorize" or "capture" if the outcome of this operation on the lead's card is unknown, else ""."""
        lead_operations = [
            row.operation for row in self.unresolved if row.operation.payment.subject == self.checkout.pk
        ]
        kinds = [
            row.kind
            for row in lead_operations
            if row.state != Operation.State.PLANNED and row.kind in UNKNOWN
        ]
        return kinds[0] if kinds else ""

    def _describe_operation(self, row: Operation) -> Line:
        parts = [reasons.reason_text(row.reason)]
        is_ours = row.purpose != Operation.Purpose.OUTSIDE
        parts.append(f"Asked {row.attempts} times." if row.attempts > 1 and is_ours else "")
        title = badges.operation_title(row) if is_ours else OUTSIDE
        refs = [refund.merchant_refund_ref for refund in self._refunds if refund.pk == row.refund_uuid]
        return Line(
            row,
            # The reference makes the refund's name here the same as in the table of refunds.
            " ".join([title, *refs]),
            badges.of_operation(row),
            self._display(row.amount),
            row.ended_at or row.created_at,
            card_of(row.payment),
            " ".join(part for part in parts if part),
        )

    def _describe_refund(self, row: Refund) -> Line:
        note = reasons.reason_text(row.failure_reason)
        title = f"Refund {row.merchant_refund_ref}"
        at = row.settled_at or self._failed_at(row) or row.created_at
        return Line(row, title, REFUND[row.status], self._display(row.amount), at, note=note)

    def _failed_at(self, row: Refund) -> datetime | None:
        """Return when the bank refused the last part of a failed refund."""
        parts = [part for part in self._operations if part.refund_uuid == row.pk and part.ended_at]
        has_failed = row.status == Refund.Status.FAILED
        return max((part.ended_at for part in parts if part.ended_at), default=None) if has_failed else None

    def _describe_dispute(self, row: Dispute) -> Line:
        until = f"Answer by {format_utc(row.respond_by)}." if row.respond_by and not row.closed_at else ""
        at = row.closed_at or row.opened_at
        return Line(row, "Dispute", DISPUTE[row.status], self._display(row.amount), at, note=until)

    def _describe_booking(self, row: Booking) -> Line:
        badge = Badge("still", "edit", "Taken back" if row.reverses_id else "Booked")
        title, amount = row.get_kind_display(), self._display(row.amount)
        return Line(row, title, badge, amount, row.created_at, note=row.note)

    def _describe_delivery(self, row: Delivery) -> Line:
        attempts = f"{row.attempt_count} attempt{'' if row.attempt_count == 1 else 's'}"
        return Line(row, row.event_type, of_delivery(row), at=row.ended_at, note=attempts)

    def _display(self, amount: int) -> str:
        return money.display(amount, self.checkout.currency)

    def _may_see(self, model: type[Model]) -> bool:
        return admin.site.get_model_admin(model).has_view_permission(self.request)


def card_of(payment: Payment) -> str:
    """Return a card with its owner: "Visa 4242", or "a mate’s Visa 4242"."""
    owner = "a mate’s " if payment.kind == Payment.Kind.SHARE else ""
    return f"{owner}{payment.card_brand or 'card'} {payment.card_last4}".strip()


def format_utc(at: datetime | None) -> str:
    """Format a time as operators see it: "25 Nov 14:03:12"."""
    return "" if at is None else f"{at.day} {at:%b %H:%M:%S}"


def format_when(at: datetime | None) -> str:
    """Format a time for use in a sentence: "on 25 Nov at 14:03:12"."""
    return "" if at is None else f"on {at.day} {at:%b} at {at:%H:%M:%S}"


def _sentence_by_status(checkout: Checkout, amount: str) -> str:
    """Return a sentence that says where the money is according to the order's state."""
    card = f" on {card_of(checkout.payment)}" if checkout.payment else ""
    until = format_utc(checkout.capture_before)
    sentences = {
        Status.CREATED: f"No money has moved. It can be paid until {format_utc(checkout.payable_until)}.",
        Status.AUTHORIZED: HELD_SENTENCE.format(amount=amount, card=card, until=until),
        Status.CAPTURED: f"The merchant has {amount}, since {format_utc(checkout.captured_at)}.",
        Status.REFUNDING: f"{amount} is on its way back to the cards that paid. The bank has not confirmed it yet.",
        Status.REFUNDED: f"{amount} went back to the cards that paid, {format_when(checkout.last_refund_at)}.",
        Status.EXPIRED: "No money has moved: it was not paid in time.",
        Status.VOIDED: "No money has moved: it was cancelled before it was paid.",
    }
    if checkout.status == Status.VOIDED and checkout.authorized_at and checkout.payment:
        is_over = checkout.payment.status == Payment.Status.VOIDED
        return (RELEASED_SENTENCE if is_over else RELEASING_SENTENCE).format(amount=amount, card=card)
    return sentences[Status(checkout.status)]
