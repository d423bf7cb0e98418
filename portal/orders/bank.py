"""The bank's entries of a checkout's timeline: operations, disputes and bookings, with what they posted."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Coalesce

from checkout.models import Checkout
from checkout.states import Status
from payments import money
from payments.models import Booking, Dispute, Operation, Payment, Posting
from portal.orders import reasons
from portal.orders.entries import REFUND_FAILED, Entry, Window, card_of
from portal.orders.order import Order

Account = Posting.Account
Posted = defaultdict[UUID | None, list[Posting]]  # by transaction
BANK: dict[str, tuple[str, str]] = {  # by kind: while under way or failed, and when it succeeded
    Operation.Kind.AUTHORIZE: ("Holding {amount} on {card}", "The bank holds {amount} on {card}"),
    Operation.Kind.CAPTURE: ("Taking {amount} from {card}", "The bank took {amount} from {card}"),
    Operation.Kind.VOID: ("Releasing {amount} on {card}", "The bank released {amount} on {card}"),
    Operation.Kind.REFUND: ("Giving {amount} back to {card}", "The bank gave {amount} back to {card}"),
}
BOOKED: dict[str, str] = {
    Booking.Kind.REFUNDED_OUTSIDE: "{amount} was given back to {card} in the bank’s own dashboard",
    Booking.Kind.SETTLED_OTHERWISE: "{amount} was given back otherwise: {card} could not take it",
}
ACCOUNTS = {
    Account.PROVIDER: "the bank",
    Account.MERCHANT: "you",
    Account.LEAD: "the lead",
    Account.DISPUTED: "what the dispute took",
    Account.OUTSIDE: "elsewhere",
    Account.RETURNED: "what is to be paid back again",
}
MOVED: dict[str, str] = {  # the state that an operation on the lead's card has led to
    Operation.Kind.AUTHORIZE: Status.AUTHORIZED,
    Operation.Kind.CAPTURE: Status.CAPTURED,
    Operation.Kind.VOID: Status.VOIDED,
}
UNDER_WAY = {
    Operation.State.PLANNED: "To be sent.",
    Operation.State.IN_FLIGHT: "Being sent.",
    Operation.State.NEEDS_ACTION: "The bank is asking the customer to confirm.",
    Operation.State.PENDING: "Accepted by the bank, not settled yet.",
    Operation.State.UNKNOWN: "The bank has not answered clearly. We ask until it does.",
}


def entries(order: Order, window: Window) -> Iterator[Entry]:
    """Yield operations, refunds that came back, disputes and bookings, with their postings."""
    checkout = order.checkout
    rows = Operation.objects.filter(
        payment__merchant=checkout.merchant_id, payment__checkout_uuid=checkout.pk
    )
    timed = rows.select_related("payment").annotate(at=Coalesce("ended_at", "created_at"))
    operations = window.of(timed, "at")
    posted_again = Q(returned_as__isnull=False) | Q(closed_as__isnull=False)
    again = operations if window.has_all(operations) else timed.filter(posted_again)
    posted: Posted = defaultdict(list)
    for posting in order.postings:
        posted[posting.transaction].append(posting)
    for operation in reversed(operations):
        yield _of_operation(checkout, operation, posted[operation.pk])
    for row in again:
        yield from _of_return(checkout, row, posted[row.returned_as])
        yield from _of_closing(checkout, row, posted[row.closed_as])
    for dispute in order.disputes:
        yield from _of_dispute(checkout, dispute, posted)
    for booking in order.bookings:
        yield _of_booking(checkout, booking, posted)


def _booked(at: datetime, title: str, lines: Sequence[Posting], text: str = "", **facts: Any) -> Entry:
    """Return the entry of what was posted without our asking the bank for it."""
    said = f"{text} Posted: {_postings(lines)}.".strip()
    return Entry(at=at, kind="bank", tone="still", icon="bank", title=title, text=said, facts=facts)


def _alarming(entry: Entry) -> Entry:
    return replace(entry, tone="stop", icon="alert")


def _of_return(checkout: Checkout, refund: Operation, lines: Sequence[Posting]) -> Iterator[Entry]:
    """Yield the entry of a settled refund that came back, at the time of its postings."""
    if lines:
        amount = money.display(refund.amount, checkout.currency)
        title = f"The refund of {amount} to {_whose_card(refund.payment)} came back"
        facts: dict[str, Any] = {
            "operation": str(refund.pk),
            "amount": refund.amount,
            "reason": refund.reason,
        }
        yield _alarming(_booked(lines[0].created_at, title, lines, reasons.said(refund.reason), **facts))


def _of_closing(checkout: Checkout, capture: Operation, lines: Sequence[Posting]) -> Iterator[Entry]:
    """Yield the entry of a mate's payment that the lead is no longer owed, since a lost dispute has given it back."""
    if lines:
        amount = money.display(capture.amount, checkout.currency)
        title = f"{amount} from a mate’s card is kept for the dispute that was lost"
        facts: dict[str, Any] = {"operation": str(capture.pk), "amount": capture.amount}
        yield _booked(lines[0].created_at, title, lines, **facts)


def _of_dispute(checkout: Checkout, dispute: Dispute, posted: Posted) -> Iterator[Entry]:
    amount = money.display(dispute.amount, checkout.currency)
    facts: dict[str, Any] = {"dispute": str(dispute.pk), "amount": dispute.amount, "reason": dispute.reason}
    opened, text = f"The customer disputes {amount}", "Their bank has taken it back until it has decided."
    tone, icon = ("done", "check") if dispute.status == Dispute.Status.WON else ("void", "slash")
    # It waits for an answer: nothing has failed.
    yield Entry(dispute.created_at, "bank", "held", "alert", opened, text, facts=facts)
    if dispute.closed_at is not None and dispute.decided_as is not None:
        decided = f"The dispute over {amount} is {dispute.status}"
        facts |= {"status": dispute.status}
        entry = _booked(dispute.closed_at, decided, posted[dispute.decided_as], **facts)
        yield replace(entry, tone=tone, icon=icon)


def _of_booking(checkout: Checkout, booking: Booking, posted: Posted) -> Entry:
    """Return the entry of an operator's booking, without its postings on `outside`, which sum to zero."""
    lines = [*posted[booking.pk], *posted[booking.borne_as]]
    amount = money.display(booking.amount, checkout.currency)
    title = BOOKED[booking.kind].format(amount=amount, card=_whose_card(booking.payment))
    shown = [line for line in lines if line.account != Account.OUTSIDE]
    return _booked(
        booking.created_at,
        title,
        shown,
        booking=str(booking.pk),
        booking_kind=booking.kind,
        amount=booking.amount,
    )


def _of_operation(checkout: Checkout, operation: Operation, posted: Sequence[Posting]) -> Entry:
    going, done = BANK[operation.kind]
    card = _whose_card(operation.payment)
    facts = {"amount": money.display(operation.amount, checkout.currency), "card": card}
    has_failed = operation.state in (Operation.State.DECLINED, Operation.State.FAILED)
    has_ended = operation.state in Operation.ENDED
    title = (done if has_ended and not has_failed else going).format(**facts)
    reason = "" if operation.returned_as else operation.reason  # why a refund came back: said by `_of_return`
    if has_failed:
        title += ": declined" if operation.state == Operation.State.DECLINED else ": failed"
    text = reasons.said(reason) if reason else UNDER_WAY.get(Operation.State(operation.state), "")
    if any(line.account == Account.MERCHANT for line in posted):
        text = f"{text} Posted: {_postings(posted)}.".strip()
    taken = f"Taken from {card}." if operation.kind == Operation.Kind.CAPTURE else ""
    return Entry(
        part_of=_part_of(checkout, operation),
        as_part=f"{taken} {text}".strip(),
        at=operation.ended_at or operation.created_at,
        kind="bank",
        tone="stop" if has_failed else "still" if has_ended else "move",
        icon="bank",
        title=title,
        text=text,
        facts=_facts(operation, posted),
    )


def _part_of(checkout: Checkout, operation: Operation) -> str:
    """Return the key of what tells of an operation that has ended, "" where it has an entry of its own."""
    has_failed = operation.state == Operation.State.FAILED
    if operation.kind == Operation.Kind.REFUND:
        is_all = operation.amount == checkout.amount and operation.refund_uuid and not operation.returned_as
        if not is_all or operation.state not in (Operation.State.FAILED, Operation.State.SUCCEEDED):
            return ""
        return REFUND_FAILED if has_failed else Status.REFUNDED
    if operation.state != Operation.State.SUCCEEDED:
        return ""
    if operation.payment.kind == Payment.Kind.SHARE:
        return str(operation.payment.subject)
    return MOVED[operation.kind] if operation.payment_id == checkout.payment_id else ""


def _facts(operation: Operation, posted: Sequence[Posting]) -> dict[str, Any]:
    return {
        "operation": str(operation.pk),
        "operation_kind": operation.kind,
        "state": operation.state,
        "amount": operation.amount,
        "attempts": operation.attempts,
        "provider_reference": operation.reference or None,
        "postings": [{"account": line.account, "amount": line.amount} for line in posted],
    }


def _postings(posted: Sequence[Posting]) -> str:
    """Return postings, which sum to zero, as a movement of money: "£95.50 from the bank to you"."""
    taken = [line for line in posted if line.amount > 0]
    given = [line for line in posted if line.amount < 0]
    if len(taken) == len(given) == 1:
        amount = money.display(taken[0].amount, taken[0].currency)
        return f"{amount} from {_account(taken[0])} to {_account(given[0])}"
    return f"from {_sides(taken)}, to {_sides(given)}"


def _sides(lines: Sequence[Posting]) -> str:
    parts = sorted(f"{_account(line)} {money.display(abs(line.amount), line.currency)}" for line in lines)
    return " and ".join(parts)


def _account(line: Posting) -> str:
    return ACCOUNTS[Account(line.account)]


def _whose_card(payment: Payment) -> str:
    return f"{'a mate’s ' if payment.kind == Payment.Kind.SHARE else ''}{card_of(payment)}"
