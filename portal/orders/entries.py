"""The entries of a checkout's timeline: changes of state, calls, webhook attempts, the bank, mates."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from checkout.models import ApiCall, Change, Checkout, PaymentRequest
from checkout.states import Status, VoidReason
from payments import money
from payments.models import Booking, Dispute, Operation, Payment, Posting
from portal.actors import Names
from portal.window import Window
from webhooks.delivery import in_words
from webhooks.models import Attempt

Account = Posting.Account
Posted = defaultdict[UUID | None, list[Posting]]  # by transaction
VERBS = {"capture": "called capture", "cancel": "called cancel", "refund": "called refund"}
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
    Account.DISPUTED: "taken back",
    Account.OUTSIDE: "moved elsewhere",
    Account.RETURNED: "to be paid back again",
}
WITH_ACTOR = (Status.CAPTURED, Status.VOIDED, Status.REFUNDING)  # where it matters who did it
UNDER_WAY = {
    Operation.State.PLANNED: "To be sent.",
    Operation.State.IN_FLIGHT: "Being sent.",
    Operation.State.NEEDS_ACTION: "The bank is asking the customer to confirm.",
    Operation.State.PENDING: "Accepted by the bank, not settled yet.",
    Operation.State.UNKNOWN: "The bank has not answered clearly. We ask until it does.",
}


@dataclass(frozen=True)
class Entry:
    """An entry of the timeline. `kind` is state, call, attempt, bank or split; `facts` are for programs."""

    at: datetime
    kind: str
    tone: str
    icon: str
    title: str
    text: str = ""
    request_id: str = ""
    link: str = ""
    since_hold: timedelta | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def of_states(
    checkout: Checkout, changes: Iterable[Change], names: Names, *, has_create: bool
) -> Iterator[Entry]:
    """Yield the changes of state; the creation only if no call tells of it (not `has_create`)."""
    amount = money.display(checkout.amount, checkout.currency)
    for change in changes:
        title, tone, icon, text = _state(checkout, change, amount)
        if change.to == Status.CREATED:
            if has_create:
                continue
        elif change.to in WITH_ACTOR and not change.actor.startswith("pump"):
            text = f"{text} {names.ask(change.actor)}."
        yield Entry(
            at=change.created_at,
            kind="state",
            tone=tone,
            icon=icon,
            title=title,
            text=text,
            request_id=change.request_id if change.actor.startswith("user:") else "",
            facts={"from": change.origin or None, "to": change.to, "actor": _kind_of(change.actor)},
        )


def _kind_of(actor: str) -> str:
    """Return the actor for programs: a key with its id, which is the merchant's own, a person without."""
    return actor if actor.startswith("client:") else actor.partition(":")[0]


def _state(checkout: Checkout, change: Change, amount: str) -> tuple[str, str, str, str]:
    """Return title, tone, icon and text of a change of state."""
    move = (change.origin, change.to)
    if move == (Status.REFUNDING, Status.CAPTURED):
        return "Refund failed", "stop", "alert", "The bank refused it. The money is still with you."
    if change.to == Status.AUTHORIZED:
        card = f" on {_card(checkout.payment)}" if checkout.payment else ""
        until = time_of(checkout.capture_before) if checkout.capture_before else ""
        return "Held", "held", "pause", f"{amount}{card}. You had until {until} to capture."
    if change.to == Status.CAPTURED:
        return "Captured", "done", "check", f"{amount} is yours."
    if change.to == Status.VOIDED:
        if checkout.void_reason == VoidReason.AUTH_EXPIRED:
            return "Hold lapsed", "void", "slash", "No capture succeeded in two minutes. Nothing was taken."
        words = f"Your words: “{checkout.cancel_note}”." if checkout.cancel_note else "Nothing was taken."
        return "Cancelled by you", "void", "slash", words
    if change.to == Status.EXPIRED:
        return "Expired", "void", "clock", "Nobody paid in time."
    if change.to == Status.REFUNDING:
        return "Refund accepted", "move", "ring", f"{amount} goes back to the cards that paid."
    if change.to == Status.REFUNDED:
        return "Refunded", "still", "back", f"{amount} is back on the cards that paid."
    return "Checkout created", "still", "dashes", ""


def verb_of(call: ApiCall) -> str:
    """Return what the call was for: "create", "capture", "cancel", "refund" or the last word of its path."""
    last = call.path.rstrip("/").rpartition("/")[2]
    return "create" if last == "checkouts" else last


def of_calls(calls: Iterable[ApiCall], names: Names) -> Iterator[Entry]:
    """Yield the merchant's calls, refused ones too."""
    for call in calls:
        verb = verb_of(call)
        did = "created the checkout" if verb == "create" else VERBS.get(verb, f"called {verb}")
        is_refused = (call.status or 500) >= 400
        answer = f"{call.status}" if call.status else "no answer yet"
        yield Entry(
            at=call.created_at,
            kind="call",
            tone="stop" if is_refused else "still",
            icon="code",
            title=f"You {did}, {answer}" + (f" {call.error_code}" if call.error_code else ""),
            text=names.ask(f"client:{call.client_uuid}") + ".",
            request_id=call.request_id,
            facts={
                "method": call.method,
                "path": call.path,
                "status": call.status,
                "code": call.error_code or None,
            },
        )


def of_attempts(attempts: Iterable[Attempt]) -> Iterator[Entry]:
    """Yield the webhook attempts with their answers."""
    for attempt in attempts:
        answer = attempt.http_status if attempt.http_status else "no answer"
        took = f" in {attempt.duration_ms / 1000:.2f} s" if attempt.duration_ms is not None else ""
        is_done = attempt.is_delivered is not None
        outcome = f"{answer}{took}" if is_done else "under way"
        excerpt = attempt.response_excerpt.strip()[:80] if attempt.is_delivered is False else ""
        said = f"Your endpoint answered “{excerpt}”." if excerpt else ""
        reason = (
            "" if attempt.http_status or not attempt.error_message else f"{in_words(attempt.error_message)}."
        )
        yield Entry(
            at=attempt.started_at,
            kind="attempt",
            tone="stop" if attempt.is_delivered is False else "still",
            icon="alert" if attempt.is_delivered is False else "send",
            title=f"Attempt {attempt.number} of {attempt.event_type}: {outcome}",
            text=said or reason,
            link=f"{reverse('portal_delivery', args=[attempt.delivery_id])}?attempt={attempt.number}",
            facts={
                "event_id": str(attempt.delivery.event_id),
                "event_type": attempt.event_type,
                "attempt": attempt.number,
                "http_status": attempt.http_status,
                "error": in_words(attempt.error_message),
                "duration_ms": attempt.duration_ms,
            },
        )


def of_bank(checkout: Checkout, window: Window) -> Iterator[Entry]:
    """Yield operations, refunds that came back, disputes and bookings, with their postings."""
    rows = Operation.objects.filter(
        payment__merchant=checkout.merchant_id, payment__checkout_uuid=checkout.pk
    )
    timed = rows.select_related("payment").annotate(at=Coalesce("ended_at", "created_at"))
    operations = window.of(timed, "at")
    back = list(rows.select_related("payment").filter(returned_as__isnull=False))
    closed = list(rows.filter(closed_as__isnull=False))
    disputes = list(Dispute.objects.filter(checkout_uuid=checkout.pk))
    booked = list(Booking.objects.filter(checkout_uuid=checkout.pk).select_related("payment"))
    moved: list[UUID | None] = [row.pk for row in (*operations, *disputes, *booked)]
    moved += [row.returned_as for row in back] + [row.closed_as for row in closed]
    moved += [row.decided_as for row in disputes] + [row.borne_as for row in booked]
    posted: Posted = defaultdict(list)
    of_checkout = Posting.objects.filter(merchant=checkout.merchant_id, checkout_uuid=checkout.pk)
    for posting in of_checkout.filter(transaction__in=filter(None, moved)):
        posted[posting.transaction].append(posting)
    for operation in operations:
        yield _of_operation(checkout, operation, posted[operation.pk])
    for refund in back:
        yield from _of_return(checkout, refund, posted[refund.returned_as])
    for capture in closed:
        yield from _of_closing(checkout, capture, posted[capture.closed_as])
    for dispute in disputes:
        yield from _of_dispute(checkout, dispute, posted)
    for booking in booked:
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
        title = f"The refund of {amount} to {_whose_card(checkout, refund.payment)} came back"
        facts: dict[str, Any] = {
            "operation": str(refund.pk),
            "amount": refund.amount,
            "reason": refund.reason,
        }
        yield _alarming(_booked(lines[0].created_at, title, lines, _in_words(refund.reason), **facts))


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
    opened, why = f"A payer disputes {amount}", _in_words(dispute.reason)
    yield _alarming(_booked(dispute.created_at, opened, posted[dispute.pk], why, **facts))
    if dispute.closed_at is not None and dispute.decided_as is not None:
        decided = f"The dispute over {amount} is {dispute.status}"
        facts |= {"status": dispute.status}
        yield _booked(dispute.closed_at, decided, posted[dispute.decided_as], **facts)


def _of_booking(checkout: Checkout, booking: Booking, posted: Posted) -> Entry:
    """Return the entry of an operator's booking, without its postings on `outside`, which sum to zero."""
    lines = [*posted[booking.pk], *posted[booking.borne_as]]
    amount = money.display(booking.amount, checkout.currency)
    title = BOOKED[booking.kind].format(amount=amount, card=_whose_card(checkout, booking.payment))
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
    card = _whose_card(checkout, operation.payment)
    facts = {"amount": money.display(operation.amount, checkout.currency), "card": card}
    has_failed = operation.state in (Operation.State.DECLINED, Operation.State.FAILED)
    has_ended = operation.state in Operation.ENDED
    title = (done if has_ended and not has_failed else going).format(**facts)
    reason = "" if operation.returned_as else operation.reason  # why a refund came back: said by `_of_return`
    if has_failed:
        title += ": declined" if operation.state == Operation.State.DECLINED else ": failed"
    text = _in_words(reason) if reason else UNDER_WAY.get(Operation.State(operation.state), "")
    if posted:
        text = f"{text} Posted: {_postings(posted)}.".strip()
    return Entry(
        at=operation.ended_at or operation.created_at,
        kind="bank",
        tone="stop" if has_failed else "still" if has_ended else "move",
        icon="bank",
        title=title,
        text=text,
        facts={
            "operation": str(operation.pk),
            "operation_kind": operation.kind,
            "state": operation.state,
            "amount": operation.amount,
            "attempts": operation.attempts,
            "provider_reference": operation.reference or None,
            "postings": [{"account": line.account, "amount": line.amount} for line in posted],
        },
    )


def _postings(posted: Sequence[Posting]) -> str:
    """Return postings in words, signed from the merchant's side: what we owe them is positive."""
    parts = []
    for line in posted:
        amount = -line.amount if line.account != "provider" else line.amount
        sign = "+" if amount > 0 else ""
        parts.append(f"{ACCOUNTS[Account(line.account)]} {sign}{money.display(amount, line.currency)}")
    return ", ".join(sorted(parts))


def _in_words(reason: str) -> str:
    return reason.replace("_", " ").capitalize() + "."


def _whose_card(checkout: Checkout, payment: Payment) -> str:
    return f"{'a mate’s ' if payment.kind == Payment.Kind.SHARE else ''}{_card(payment)}"


def _card(payment: Any) -> str:
    return f"{payment.card_brand or 'card'} ending {payment.card_last4}" if payment.card_last4 else "a card"


def of_split(checkout: Checkout) -> Iterator[Entry]:
    """Yield the split of the cost, and each share that was paid: counts and amounts, no names."""
    shares = list(PaymentRequest.objects.filter(checkout=checkout)) if checkout.has_mates else []
    if not shares:
        return
    mates = "1 mate" if len(shares) == 1 else f"{len(shares)} mates"
    yield Entry(
        at=min(share.created_at for share in shares),
        kind="split",
        tone="still",
        icon="dashes",
        title="Customer split the cost",
        text=f"1 lead and {mates}. They see names, you see counts.",
        facts={"mates": len(shares)},
    )
    for share in shares:
        if share.paid_at:
            amount = money.display(share.amount, checkout.currency)
            yield Entry(
                at=share.paid_at,
                kind="split",
                tone="done",
                icon="check",
                title=f"A mate paid {amount}",
                text="It goes back to the lead’s card. What is yours stays the same.",
                facts={"amount": share.amount},
            )


def time_of(moment: datetime) -> str:
    """Return the time of day in the zone of the page."""
    return date_format(timezone.localtime(moment), "H:i:s")
