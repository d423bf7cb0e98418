"""The entries in a checkout's timeline: states, calls, webhook attempts and shares."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.urls import reverse

from checkout.models import ApiCall, Change, PaymentRequest
from checkout.states import ShareStatus, Status, VoidReason
from config.lib import clock
from payments import money
from payments.models import Payment
from portal import badges
from portal.badges import Badge
from portal.orders.order import Order
from portal.templatetags.portal import span, time_of
from webhooks.delivery import describe_error, given_reason
from webhooks.models import Attempt, Delivery

VERBS = {
    "capture": "called capture",
    "cancel": "called cancel",
    "refund": "called refund",
    "read": "read the checkout",
}
REFUSED_FROM = 400  # the lowest status code of a refused API call
UNKNOWN_CODE = "outcome_unknown"  # the error code of a call that ended before the bank answered
OUTCOME_UNKNOWN = Badge("held", "alert", "Outcome unknown")
CALL_TONES = {badges.ACCEPTED: "still", badges.REFUSED: "stop", OUTCOME_UNKNOWN: "held"}
# The key of the entry for a failed refund. The entry for any other change of state has the new state as its key,
# and the entry for a share has the share's id.
REFUND_FAILED = "refund_failed"
WITH_ACTOR = (Status.CAPTURED, Status.VOIDED, Status.REFUNDING)  # entries for these states name the actor

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Window:
    """The rows to read for a page: the newest `maximum` rows before a time, or among all rows if the time is None."""

    before: datetime | None
    maximum: int

    def read_rows(self, rows: QuerySet[Row, Any], key: str = "created_at") -> list[Row]:
        """Return the rows in this window, sorted by the column `key`, with the newest first."""
        if self.before is not None:
            rows = rows.filter(**{f"{key}__lt": self.before})
        return list(rows.order_by(f"-{key}", "-pk")[: self.maximum])


@dataclass(frozen=True)
class Entry:
    """An entry in the timeline.

    `kind` is state, call, attempt, bank, split or upcoming. `facts` are for the JSON file. `actor` is the
    person or API key that acted, or "" if the entry does not name one, and `by` is a readable name for it.
    `cause` is the request that changed a state. If another entry reports the same fact, `part_of` is that
    entry's `key`. When the other entry is on the page, it shows the text `as_part`, and this entry is left out.
    """

    at: datetime
    kind: str
    tone: str
    icon: str
    title: str
    text: str = ""
    actor: str = ""
    by: str = ""
    request_id: str = ""
    link: str = ""
    cause: str = ""
    key: str = ""
    part_of: str = ""
    as_part: str = ""
    since_hold: timedelta | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def state_entries(order: Order, changes: Sequence[Change], *, has_create: bool) -> Iterator[Entry]:
    """Yield entries for the changes of state, oldest first.

    If an entry for an API call reports the creation (`has_create`), the creation is left out.
    """
    for change in changes:
        title, tone, icon, text = _state_entry_words(order, change)
        if change.to == Status.CREATED and has_create:
            continue
        is_named = change.to in WITH_ACTOR and not change.actor.startswith("pump")
        yield Entry(
            at=change.created_at,
            kind="state",
            tone=tone,
            icon=icon,
            title=title,
            text=text,
            actor=change.actor if is_named else "",
            request_id=change.request_id if change.actor.startswith("user:") else "",
            cause=change.request_id,
            key=REFUND_FAILED if _has_refund_failed(change) else change.to,
            facts={"from": change.origin or None, "to": change.to, "actor": _public_actor(change.actor)},
        )


def _has_refund_failed(change: Change) -> bool:
    return (change.origin, change.to) == (Status.REFUNDING, Status.CAPTURED)


def _public_actor(actor: str) -> str:
    """Return the actor for the JSON file. An API key has its id, and all other actors have no id.

    A key's id is included because the key belongs to the merchant.
    """
    return actor if actor.startswith("client:") else actor.partition(":")[0]


def _state_entry_words(order: Order, change: Change) -> tuple[str, str, str, str]:
    checkout = order.checkout
    amount = money.display(checkout.amount, checkout.currency)
    if _has_refund_failed(change):
        return "Refund failed", "stop", "alert", "The bank refused it. You still have the money."
    if change.to == Status.AUTHORIZED:
        card = f" on {card_of(checkout.payment)}" if checkout.payment else ""
        until = time_of(checkout.capture_before) if checkout.capture_before else ""
        have = "had" if checkout.status != Status.AUTHORIZED or checkout.has_lapsed(clock.now()) else "have"
        return "Held", "held", "pause", f"{amount}{card}. You {have} until {until} to capture."
    if change.to == Status.CAPTURED:
        return "Captured", "done", "check", ""
    if change.to == Status.VOIDED:
        if checkout.void_reason == VoidReason.AUTH_EXPIRED:
            return "Hold lapsed", "void", "slash", "No capture succeeded in two minutes. No money was taken."
        words = f"Your reason: “{checkout.cancel_note}”." if checkout.cancel_note else "No money was taken."
        return "Cancelled by you", "void", "slash", words
    if change.to == Status.EXPIRED:
        return "Expired", "void", "clock", "It was not paid in time."
    if change.to == Status.REFUNDING:
        return "Refund accepted", "move", "ring", _refund_sentence(order, change)
    if change.to == Status.REFUNDED:
        return "Refunded", "still", "back", f"{amount} went back to {_refund_destination(order)}."
    return "Checkout created", "still", "dashes", ""


def _refund_sentence(order: Order, accepted: Change) -> str:
    """Return a sentence about a refund: its state while it is on its way, and its destination afterwards."""
    amount, to = money.display(order.checkout.amount, order.checkout.currency), _refund_destination(order)
    end = next((row for row in order.ends_of_refunds if row.created_at > accepted.created_at), None)
    if end is not None:
        return f"A refund of {amount} to {to} was requested."
    if order.has_refused_part:
        return f"{amount} goes back to {to}, but the bank has refused a part."
    return f"{amount} is on its way to {to}."


def _refund_destination(order: Order) -> str:
    """Return where a refund goes: the name of the lead's card, or words such as "all cards that paid"."""
    payment = order.checkout.payment
    has_mate_paid = any(share.paid_at for share in order.shares)
    return card_of(payment) if payment and not has_mate_paid else "the cards that paid"


def verb_of(call: ApiCall) -> str:
    """Return the verb of a call: "create", "capture", "cancel", "refund", "read", or the last word in its path."""
    if call.method == "GET":
        return "read"
    last_word = call.path.rstrip("/").rpartition("/")[2]
    return "create" if last_word == "checkouts" else last_word


def badge_of_call(call: ApiCall) -> Badge:
    """Return the badge for an API call: accepted, refused, or answered while the bank's outcome was unknown."""
    if call.error_code == UNKNOWN_CODE:
        return OUTCOME_UNKNOWN
    return badges.REFUSED if call.status >= REFUSED_FROM else badges.ACCEPTED


def call_entries(calls: Iterable[ApiCall]) -> Iterator[Entry]:
    """Yield entries for the merchant's API calls, including refused ones."""
    for call in calls:
        verb = verb_of(call)
        action = "created the checkout" if verb == "create" else VERBS.get(verb, f"called {verb}")
        yield Entry(
            at=call.created_at,
            kind="call",
            tone=CALL_TONES[badge_of_call(call)],
            icon="code",
            title=f"You {action}, {call.status}" + (f" {call.error_code}" if call.error_code else ""),
            actor=f"client:{call.client_uuid}",
            request_id=call.request_id,
            facts={
                "method": call.method,
                "path": call.path,
                "status": call.status,
                "code": call.error_code or None,
            },
        )


def attempt_entries(attempts: Iterable[Attempt], deliveries: Mapping[UUID, Delivery]) -> Iterator[Entry]:
    """Yield entries for webhook attempts with the responses to them. `deliveries` maps ids to the deliveries."""
    for attempt in attempts:
        given = given_reason(attempt)
        response = f"Your endpoint answered “{given}”." if given else ""
        has_reason = attempt.error_message and not attempt.http_status
        reason = f"{describe_error(attempt.error_message)}." if has_reason else ""
        yield Entry(
            at=attempt.started_at,
            kind="attempt",
            tone="stop" if attempt.is_delivered is False else "still",
            icon="alert" if attempt.is_delivered is False else "send",
            title=f"Attempt {attempt.number} of {attempt.event_type}: {_attempt_outcome(attempt)}",
            text=response or reason,
            link=f"{reverse('portal_delivery', args=[attempt.delivery_id])}?attempt={attempt.number}",
            facts={
                "event_id": str(deliveries[attempt.delivery_id].event_id),
                "event_type": attempt.event_type,
                "attempt": attempt.number,
                "http_status": attempt.http_status,
                "error": describe_error(attempt.error_message),
                "duration_ms": attempt.duration_ms,
            },
        )


def _attempt_outcome(attempt: Attempt) -> str:
    if attempt.is_delivered is None:
        return "under way"
    return f"{attempt.http_status or 'no answer'}{_duration_words(attempt.duration_ms)}"


def _duration_words(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    return f" in {span(milliseconds / 1000)}"


def split_entries(order: Order) -> Iterator[Entry]:
    """Yield entries for the split and for each paid share. They show counts and amounts, but no names."""
    checkout, shares = order.checkout, order.shares
    if not shares:
        return
    mates = "1 mate" if len(shares) == 1 else f"{len(shares)} mates"
    yield Entry(
        at=min(share.created_at for share in shares),
        kind="split",
        tone="still",
        icon="dashes",
        title="Customer split the cost",
        text=f"1 lead and {mates}. They see each other’s names. You see only how many there are.",
        facts={"mates": len(shares)},
    )
    for share in shares:
        if share.paid_at:
            is_reimbursed = share.pk in order.reimbursed_amounts
            yield _share_paid_entry(share, share.paid_at, checkout.currency, is_reimbursed=is_reimbursed)


def _share_paid_entry(share: PaymentRequest, at: datetime, currency: str, *, is_reimbursed: bool) -> Entry:
    # The share's refund is not reported here, because a later entry reports it.
    verb = "goes back to"
    if share.status == ShareStatus.REIMBURSED or is_reimbursed:
        verb = "went back to"
    elif share.status == ShareStatus.REFUNDED:
        verb = "was not passed on to"
    return Entry(
        at=at,
        kind="split",
        tone="done",
        icon="check",
        key=str(share.pk),
        title=f"A mate paid {money.display(share.amount, currency)}",
        text=f"It {verb} the lead’s card. Your amount does not change.",
        facts={"amount": share.amount},
    )


def card_of(payment: Payment) -> str:
    """Return the name of the payment's card for use in a sentence."""
    return f"{payment.card_brand or 'card'} ending {payment.card_last4}" if payment.card_last4 else "a card"
