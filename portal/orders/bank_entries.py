"""The bank's entries in a checkout's timeline: operations, disputes and bookings, with their postings."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models.functions import Coalesce

from checkout.models import Checkout
from checkout.remedies import reasons
from checkout.states import Status
from payments import disputes, money, planning
from payments.models import Booking, Dispute, Movement, Operation, Payment, Posting
from portal.orders import disputed
from portal.orders.entries import REFUND_FAILED, Entry, Window, card_of
from portal.orders.order import Order

Account, Kind, Purpose, State = Posting.Account, Movement.Kind, Operation.Purpose, Operation.State
PostingsByTransaction = defaultdict[UUID, list[Posting]]
# For each kind of operation: the title before its success, and the title after it.
BANK: dict[str, tuple[str, str]] = {
    Operation.Kind.AUTHORIZE: ("Holding {amount} on {card}", "The bank holds {amount} on {card}"),
    Operation.Kind.CAPTURE: ("Taking {amount} from {card}", "The bank took {amount} from {card}"),
    Operation.Kind.VOID: ("Releasing {amount} on {card}", "The bank released {amount} on {card}"),
    Operation.Kind.REFUND: ("Giving {amount} back to {card}", "The bank gave {amount} back to {card}"),
}
OUTSIDE = (
    "A refund of {amount} to {card} was made in the bank’s dashboard",
    "{amount} was refunded to {card} in the bank’s dashboard",
)
# For each kind of booking: the title of its entry, and the title of the entry that reverses it.
BOOKING_TITLES: dict[str, tuple[str, str]] = {
    Booking.Kind.SETTLED_OUTSIDE: (
        "{amount} was refunded another way: {card} could not take it",
        "The entry for {amount} refunded another way was reversed",
    ),
    Booking.Kind.CLOSING: (
        "{amount} of a mate’s payment is not owed to the lead any more",
        "{amount} of a mate’s payment is owed to the lead again",
    ),
}
DISPUTE_TEXT = "Their bank has taken the money back and keeps it until the dispute is decided."
ACCOUNTS = {
    Account.PROVIDER: "the bank",
    Account.MERCHANT: "you",
    Account.LEAD: "the lead",
    Account.OUTSIDE: "elsewhere",
}
# The state of an order after an operation of this kind on the lead's card has succeeded.
STATE_AFTER: dict[str, str] = {
    Operation.Kind.AUTHORIZE: Status.AUTHORIZED,
    Operation.Kind.CAPTURE: Status.CAPTURED,
    Operation.Kind.VOID: Status.VOIDED,
}
UNDER_WAY = {
    State.PLANNED: "To be sent.",
    State.IN_FLIGHT: "Being sent.",
    State.NEEDS_ACTION: "The bank is asking the customer to confirm.",
    State.PENDING: "Accepted by the bank, not settled yet.",
    State.UNKNOWN: "The bank has not answered clearly. We ask until it does.",
}
# For each reason why the bank did not carry out an operation: the end of the title, and the text.
NOT_CARRIED_OUT = {
    planning.WITHDRAWN: ("not sent", "It was planned, and is not sent any more."),
    planning.REPLACED: ("did not arrive", "The bank did not get this request, so we sent a new one."),
}


def bank_entries_of(order: Order, window: Window) -> Iterator[Entry]:
    """Yield the entries for operations, returned refunds, disputes and bookings, with their postings."""
    checkout = order.checkout
    rows = Operation.objects.filter(
        payment__merchant=checkout.merchant_id, payment__checkout_uuid=checkout.pk
    )
    timed = rows.select_related("payment").annotate(at=Coalesce("ended_at", "created_at"))
    postings: PostingsByTransaction = defaultdict(list)
    for posting in order.postings:
        postings[posting.transaction].append(posting)
    movements = {row.operation_id: row for row in order.movements if row.kind != Kind.REFUND_RETURNED}
    returns = {row.operation_id: row for row in order.movements if row.kind == Kind.REFUND_RETURNED}
    for operation in reversed(window.read_rows(timed, "at")):
        movement = movements.get(operation.pk)
        lines = postings[movement.pk] if movement else []
        yield _operation_entry(checkout, operation, lines, is_returned=operation.pk in returns)
    for row in returns.values():
        yield _return_entry(checkout, row, postings[row.pk])
    for dispute in order.disputes:
        yield from _dispute_entries(order, dispute, postings)
    for booking in order.bookings:
        yield _booking_entry(checkout, booking, postings[booking.pk])


def _posting_entry(
    at: datetime, title: str, postings: Sequence[Posting], text: str = "", **facts: Any
) -> Entry:
    """Return the entry for postings that the bank or an operator caused, without a request from the service."""
    full_text = f"{text} {_postings_sentence(postings)}".strip()
    return Entry(at=at, kind="bank", tone="still", icon="bank", title=title, text=full_text, facts=facts)


def _return_entry(checkout: Checkout, row: Movement, postings: Sequence[Posting]) -> Entry:
    """Return the entry for a settled refund that was returned. Its time is when the service learned of the return."""
    amount, reason = (
        money.display(row.amount, checkout.currency),
        row.operation.reason if row.operation else "",
    )
    title = f"The refund of {amount} to {_whose_card(row.payment)} was returned"
    facts: dict[str, Any] = {"operation": str(row.operation_id), "amount": row.amount, "reason": reason}
    entry = _posting_entry(row.recorded_at, title, postings, reasons.reason_text(reason), **facts)
    return replace(entry, tone="stop", icon="alert")


def _dispute_entries(order: Order, dispute: Dispute, postings: PostingsByTransaction) -> Iterator[Entry]:
    """Yield the entries for a dispute: its start, each later movement of its money, and its decision."""
    amount = money.display(dispute.amount, order.checkout.currency)
    facts: dict[str, Any] = {"dispute": str(dispute.pk), "amount": dispute.amount, "reason": dispute.reason}
    postings_at: dict[datetime | None, list[Posting]] = {dispute.created_at: [], dispute.closed_at: []}
    for row in order.movements:
        if row.dispute_id != dispute.pk:
            continue
        if row.recorded_at in postings_at:
            postings_at[row.recorded_at] += postings[row.pk]
        else:
            yield _posting_entry(row.recorded_at, _later_movement_title(row), postings[row.pk], **facts)
    # The tone is `held`, the colour of waiting entries, because the dispute waits for an answer.
    title, first_postings = disputed.dispute_title(dispute), postings_at[dispute.created_at]
    entry = _posting_entry(dispute.created_at, title, first_postings, DISPUTE_TEXT, **facts)
    yield replace(entry, tone="held", icon="alert")
    if dispute.closed_at is not None:
        tone, icon = ("done", "check") if dispute.status == Dispute.Status.WON else ("void", "slash")
        title = f"The dispute over {amount} is {dispute.status}"
        facts |= {"status": dispute.status}
        yield replace(
            _posting_entry(dispute.closed_at, title, postings_at[dispute.closed_at], **facts),
            tone=tone,
            icon=icon,
        )


def _later_movement_title(row: Movement) -> str:
    bank = f"The {disputes.payer_of(row.payment)}’s bank"
    amount = money.display(abs(row.amount), row.payment.currency)
    if row.kind == Kind.DISPUTE_REINSTATED:
        return f"{bank} gave {amount} back to you"
    return f"{bank} took {amount} back"


def _booking_entry(checkout: Checkout, booking: Booking, postings: Sequence[Posting]) -> Entry:
    amount = money.display(abs(booking.amount), checkout.currency)
    title = BOOKING_TITLES[booking.kind][booking.reverses_id is not None]
    return _posting_entry(
        booking.created_at,
        title.format(amount=amount, card=_whose_card(booking.payment)),
        postings,
        booking=str(booking.pk),
        booking_kind=booking.kind,
        amount=booking.amount,
    )


def _operation_entry(
    checkout: Checkout, operation: Operation, postings: Sequence[Posting], *, is_returned: bool
) -> Entry:
    has_failed = operation.state in (State.DECLINED, State.FAILED)
    source = (
        f"Taken from {_whose_card(operation.payment)}." if operation.kind == Operation.Kind.CAPTURE else ""
    )
    text = _operation_text(operation, postings, is_returned=is_returned)
    is_stopped = has_failed and operation.reason not in NOT_CARRIED_OUT
    return Entry(
        part_of="" if is_returned else _parent_key(checkout, operation),
        as_part=f"{source} {text}".strip(),
        at=operation.ended_at or operation.created_at,
        kind="bank",
        tone="stop" if is_stopped else "still" if operation.state in Operation.ENDED else "move",
        icon="bank",
        title=_operation_title(checkout, operation),
        text=text,
        facts=_operation_facts(operation, postings),
    )


def _operation_title(checkout: Checkout, operation: Operation) -> str:
    open_title, done_title = OUTSIDE if operation.purpose == Purpose.OUTSIDE else BANK[operation.kind]
    facts = {
        "amount": money.display(operation.amount, checkout.currency),
        "card": _whose_card(operation.payment),
    }
    if operation.state == State.SUCCEEDED:
        return done_title.format(**facts)
    if operation.state == State.DECLINED:
        return f"{open_title.format(**facts)}: declined"
    if operation.state == State.FAILED:
        return f"{open_title.format(**facts)}: {NOT_CARRIED_OUT.get(operation.reason, ('failed',))[0]}"
    return open_title.format(**facts)


def _operation_text(operation: Operation, postings: Sequence[Posting], *, is_returned: bool) -> str:
    """Return an operation's text: why it failed or what it waits for, and its postings.

    For a returned refund, the reason is left out, because a separate entry reports it.
    """
    reason = "" if is_returned else operation.reason
    _, not_carried_out = NOT_CARRIED_OUT.get(reason, ("", ""))
    text = not_carried_out or reasons.reason_text(reason) or UNDER_WAY.get(State(operation.state), "")
    if any(line.account == Account.MERCHANT for line in postings):
        text = f"{text} {_postings_sentence(postings)}".strip()
    return text


def _parent_key(checkout: Checkout, operation: Operation) -> str:
    """Return the key of the entry that includes this operation, or "" if the operation has a separate entry."""
    if operation.kind == Operation.Kind.REFUND:
        is_all = operation.amount == checkout.amount and operation.refund_uuid
        if not is_all or operation.reason in NOT_CARRIED_OUT:
            return ""
        return {State.FAILED: REFUND_FAILED, State.SUCCEEDED: Status.REFUNDED}.get(State(operation.state), "")
    if operation.state != State.SUCCEEDED:
        return ""
    if operation.payment.kind == Payment.Kind.SHARE:
        return str(operation.payment.subject)
    return STATE_AFTER[operation.kind] if operation.payment_id == checkout.payment_id else ""


def _operation_facts(operation: Operation, postings: Sequence[Posting]) -> dict[str, Any]:
    return {
        "operation": str(operation.pk),
        "operation_kind": operation.kind,
        "purpose": operation.purpose,
        "state": operation.state,
        "amount": operation.amount,
        "attempts": operation.attempts,
        "provider_reference": operation.reference or None,
        "postings": [{"account": line.account, "amount": line.amount} for line in postings],
    }


def _postings_sentence(postings: Sequence[Posting]) -> str:
    """Return the postings of several transactions as a sentence, or "" if they cancel each other out."""
    sums: dict[str, int] = {}
    for line in postings:
        sums[line.account] = sums.get(line.account, 0) + line.amount
    origins = {account: amount for account, amount in sums.items() if amount > 0}
    destinations = {account: amount for account, amount in sums.items() if amount < 0}
    if not origins:
        return ""
    currency = postings[0].currency
    if len(origins) == len(destinations) == 1:
        ((origin, amount),) = origins.items()
        (destination,) = destinations
        names = f"from {_account_name(origin)} to {_account_name(destination)}"
        return f"Posted: {money.display(amount, currency)} {names}."
    return f"Posted: from {_sides_words(origins, currency)}, to {_sides_words(destinations, currency)}."


def _sides_words(sums: dict[str, int], currency: str) -> str:
    parts = sorted(
        f"{_account_name(account)} {money.display(abs(amount), currency)}" for account, amount in sums.items()
    )
    return " and ".join(parts)


def _account_name(account: str) -> str:
    return ACCOUNTS[Account(account)]


def _whose_card(payment: Payment) -> str:
    return f"{'a mate’s ' if payment.kind == Payment.Kind.SHARE else ''}{card_of(payment)}"
