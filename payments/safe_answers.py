"""Makes every answer of a provider safe to record, before other code reads it (rule doubt.bounded).

A value that is too long or invalid is cut or replaced, and the original is logged. No answer can therefore
stop the recording of money. If an answer loses its meaning by that (the operation's outcome, the amount
moved, or the address where the payer is asked), it becomes UNKNOWN and is reported as a discrepancy.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

import structlog

from payments import money, provider, readable
from payments.discrepancies import kinds, reporting
from payments.models import Operation
from payments.provider import (
    AmountRule,
    Books,
    CaptureRecord,
    CardForm,
    CardPage,
    DisputeLine,
    DisputeRecord,
    Entry,
    Notification,
    Outcome,
    PaymentRecord,
    ProviderUnreachable,
    RefundRecord,
    Verdict,
)

log = structlog.get_logger("payments.safe_answers")

MAX_IN_LOG = 24_000  # characters; `ascii` can turn one into ten
T = TypeVar("T")
Readers = Mapping[str, Callable[[Any], Any]]
OUTCOME: Readers = {
    "verdict": readable.verdict,
    "reference": readable.reference,
    "reason": readable.reason,
    "action_url": readable.address,
    "card": readable.card,
    "amount": readable.amount,
    "is_vouched": readable.is_true,
}
NOTIFICATION: Readers = {
    "id": readable.message_id,
    "payment": readable.uuid,
    "kind": readable.kind,
    "verdict": readable.verdict_of_record,
    "operation": readable.uuid_or_none,
}
PAYMENT: Readers = {
    "payment": readable.uuid,
    "account": readable.uuid,
    "subject": readable.uuid_or_none,
    "amount": readable.amount_of_record,
    "currency": readable.currency,
    "is_moved": readable.is_moved,
    "reference": readable.reference,
    "place": readable.account,
    "card": readable.card,
}
DISPUTE: Readers = {
    "reference": readable.distinct_reference,
    "amount": readable.amount_of_record,
    "currency": readable.currency,
    "reason": readable.reason,
    "status": readable.dispute_status,
    "opened_at": readable.moment,
    "respond_by": readable.moment,
    "lines": readable.sequence,
    "unknown_status": readable.reason,
}
LINE: Readers = {
    "reference": readable.distinct_reference,
    "is_back": readable.is_true,
    "at": readable.moment,
}
CAPTURE: Readers = {
    "reference": readable.distinct_reference,
    "amount": readable.amount_of_record,
    "currency": readable.currency,
    "at": readable.moment,
}
REFUND: Readers = {
    "reference": readable.distinct_reference,
    "amount": readable.amount_of_record,
    "currency": readable.currency,
    "verdict": readable.verdict_of_record,
    "at": readable.moment,
    "reason": readable.reason,
    "has_returned": readable.is_true,
    "operation": readable.uuid_or_none,
    "refund": readable.uuid_or_none,
    "share": readable.uuid_or_none,
}
BOOKS: Readers = {
    "is_held": readable.is_true,
    "capture": readable.unchanged,
    "refunds": readable.sequence,
    "disputes": readable.sequence,
}
ENTRY: Readers = {
    "reference": readable.distinct_reference,
    "account": readable.account,
    "kind": readable.entry_kind,
    "amount": readable.amount_of_record,
    "fee": readable.amount_of_record,
    "currency": readable.currency,
    "at": readable.moment,
    "available_at": readable.moment,
    "payment": readable.uuid_or_none,
    "operation": readable.uuid_or_none,
    "payout": readable.reference,
}
MAX_DISPUTES = 100  # of one payment
MAX_REFUNDS = 500  # of one payment
MAX_LINES = 100  # of one dispute
MAX_NOTIFICATIONS = 1000  # in one message


def outcome(operation: Operation, said: object) -> Outcome:
    """Return an answer about an operation, safe to record.

    If it has lost its meaning, report a discrepancy and return UNKNOWN.
    """
    read = _read(said, Outcome, OUTCOME, operation=str(operation.pk))
    if isinstance(said, Outcome) and _has_sense(operation, said, read):
        return Outcome(**read)
    reporting.report_operation(operation, kinds.UNREADABLE_ANSWER, to=operation.kind)
    return Outcome(Verdict.UNKNOWN, reference=read["reference"])


def notifications(said: Iterable[object]) -> Iterator[Notification]:
    """Yield up to MAX_NOTIFICATIONS of a message, safe to use. An invalid field gets a placeholder."""
    for told in islice(said, MAX_NOTIFICATIONS):
        yield Notification(**_read(told, Notification, NOTIFICATION))


def disputes(said: Iterable[object], *, now: datetime) -> Iterator[DisputeRecord]:
    """Yield up to MAX_DISPUTES disputes of a payment, safe to book. `now` replaces an invalid `opened_at`."""
    for told in islice(said, MAX_DISPUTES):
        read = _read(told, DisputeRecord, DISPUTE)
        lines = tuple(_dated(line, DisputeLine, LINE, now) for line in read["lines"][:MAX_LINES])
        yield DisputeRecord(**read | {"opened_at": read["opened_at"] or now, "lines": lines})


def books(said: object, *, now: datetime) -> Books:
    """Return the provider's books about a payment, safe to record. `now` replaces an invalid time."""
    read = _read(said, Books, BOOKS)
    capture = read["capture"]
    return Books(
        is_held=read["is_held"],
        capture=None if capture is None else _dated(capture, CaptureRecord, CAPTURE, now),
        refunds=tuple(_dated(told, RefundRecord, REFUND, now) for told in read["refunds"][:MAX_REFUNDS]),
        disputes=tuple(disputes(read["disputes"], now=now)),
    )


def _dated(said: object, kind: type[T], readers: Readers, now: datetime) -> T:
    """Return a record of the given kind, safe to store, with `now` in place of an invalid `at`."""
    read = _read(said, kind, readers)
    return kind(**read | {"at": read["at"] or now})


def entries(said: Iterable[object], *, now: datetime) -> Iterator[Entry]:
    """Yield the lines of the provider's balance, safe to store. `now` replaces an invalid `at`."""
    for told in said:
        read = _read(told, Entry, ENTRY)
        yield Entry(**read | {"at": read["at"] or now})


def payment_records(said: Iterable[object]) -> Iterator[PaymentRecord]:
    """Yield the payments in the provider's books, safe to restore."""
    for told in said:
        yield PaymentRecord(**_read(told, PaymentRecord, PAYMENT))


def payments(said: Iterable[object]) -> Iterator[UUID]:
    """Yield the ids of our payments that the provider names, with the nil UUID for an invalid id."""
    return map(readable.uuid, said)


def amount_rule(currency: str) -> AmountRule:
    """Return the amounts that a card can be charged.

    The bounds are multiples of the step, within the service's own bounds.
    """
    said = provider.current().amount_rule(currency)
    step = max(1, said.step)
    minimum, maximum = max(1, said.minimum), min(said.maximum, money.MAXIMUM)
    return AmountRule(minimum=-(-minimum // step) * step, step=step, maximum=maximum // step * step)


def card_page(form: CardForm) -> str | CardPage:
    """Return the provider's card page, or its address.

    Raises ProviderUnreachable, also if the address is invalid.
    """
    try:
        said = provider.current().open_card_form(form)
    except ProviderUnreachable:
        raise
    except Exception as error:
        log.warning("provider gave no card page", error=type(error).__name__)
        raise ProviderUnreachable from error
    if isinstance(said, CardPage):
        return said
    address = readable.address(said)
    if not address:
        _log_strange("card_page", said)
        raise ProviderUnreachable
    return address


def _has_sense(operation: Operation, said: Outcome, read: Mapping[str, Any]) -> bool:
    """Return whether an answer kept its meaning: verdict, amount, and the page where the payer is asked."""
    if read["verdict"] is None or (said.amount is not None and read["amount"] is None):
        return False
    if read["verdict"] == Verdict.NEEDS_ACTION:
        return operation.kind == Operation.Kind.AUTHORIZE and bool(read["action_url"])
    return True


def _read(said: object, kind: type, readers: Readers, **of: str) -> dict[str, Any]:
    """Return each field as its reader returns it. Log the fields that their readers changed."""
    if not isinstance(said, kind):
        _log_strange(kind.__name__.lower(), said, **of)
        return {name: read(None) for name, read in readers.items()}
    kept = {name: read(getattr(said, name)) for name, read in readers.items()}
    for name, value in kept.items():
        original = getattr(said, name)
        if type(value) is not type(original) or value != original:
            _log_strange(name, original, **of)
    return kept


def _log_strange(field: str, said: object, **of: str) -> None:
    """Log a provider's invalid value, up to MAX_IN_LOG characters and without card numbers."""
    try:
        text = ascii(said)
    except Exception:
        text = type(said).__name__
    shown = readable.without_card_numbers(text)[:MAX_IN_LOG]
    log.warning("provider said something strange", field=field, said=shown, **of)
