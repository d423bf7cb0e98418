"""Makes each answer of the provider safe to record before other code reads it (rule doubt.bounded).

A value that is too long or invalid is cut or replaced, and the original is logged. An invalid answer
therefore cannot stop the recording of money. If the outcome, the amount moved, or the address where the payer
confirms is invalid, the answer becomes UNKNOWN and a discrepancy is reported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

import structlog

from payments import money, provider, provider_fields
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

MAX_IN_LOG = 24_000  # in characters, of which `ascii` can need ten for one character
T = TypeVar("T")
Readers = Mapping[str, Callable[[Any], Any]]
OUTCOME: Readers = {
    "verdict": provider_fields.read_verdict,
    "reference": provider_fields.read_reference,
    "reason": provider_fields.read_reason,
    "action_url": provider_fields.read_address,
    "card": provider_fields.read_card,
    "amount": provider_fields.read_amount,
    "is_vouched": provider_fields.is_true,
}
NOTIFICATION: Readers = {
    "id": provider_fields.read_message_id,
    "payment": provider_fields.read_uuid,
    "kind": provider_fields.read_operation_kind,
    "verdict": provider_fields.read_verdict_or_unknown,
    "operation": provider_fields.read_uuid_or_none,
}
PAYMENT: Readers = {
    "payment": provider_fields.read_uuid,
    "account": provider_fields.read_uuid,
    "subject": provider_fields.read_uuid_or_none,
    "amount": provider_fields.read_amount_or_zero,
    "currency": provider_fields.read_currency,
    "is_moved": provider_fields.is_not_false,
    "reference": provider_fields.read_reference,
    "place": provider_fields.read_account,
    "card": provider_fields.read_card,
}
DISPUTE: Readers = {
    "reference": provider_fields.read_distinct_reference,
    "amount": provider_fields.read_amount_or_zero,
    "currency": provider_fields.read_currency,
    "reason": provider_fields.read_reason,
    "status": provider_fields.read_dispute_status,
    "opened_at": provider_fields.read_moment,
    "respond_by": provider_fields.read_moment,
    "lines": provider_fields.read_sequence,
    "unknown_status": provider_fields.read_reason,
}
LINE: Readers = {
    "reference": provider_fields.read_distinct_reference,
    "is_back": provider_fields.is_true,
    "at": provider_fields.read_moment,
}
CAPTURE: Readers = {
    "reference": provider_fields.read_distinct_reference,
    "amount": provider_fields.read_amount_or_zero,
    "currency": provider_fields.read_currency,
    "at": provider_fields.read_moment,
}
REFUND: Readers = {
    "reference": provider_fields.read_distinct_reference,
    "amount": provider_fields.read_amount_or_zero,
    "currency": provider_fields.read_currency,
    "verdict": provider_fields.read_verdict_or_unknown,
    "at": provider_fields.read_moment,
    "reason": provider_fields.read_reason,
    "has_returned": provider_fields.is_true,
    "operation": provider_fields.read_uuid_or_none,
    "refund": provider_fields.read_uuid_or_none,
    "share": provider_fields.read_uuid_or_none,
}
BOOKS: Readers = {
    "is_held": provider_fields.is_true,
    "capture": provider_fields.read_unchanged,
    "refunds": provider_fields.read_sequence,
    "disputes": provider_fields.read_sequence,
}
ENTRY: Readers = {
    "reference": provider_fields.read_distinct_reference,
    "account": provider_fields.read_account,
    "kind": provider_fields.read_entry_kind,
    "amount": provider_fields.read_amount_or_zero,
    "fee": provider_fields.read_amount_or_zero,
    "currency": provider_fields.read_currency,
    "at": provider_fields.read_moment,
    "available_at": provider_fields.read_moment,
    "payment": provider_fields.read_uuid_or_none,
    "operation": provider_fields.read_uuid_or_none,
    "payout": provider_fields.read_reference,
}
MAX_DISPUTES = 100  # of one payment
MAX_REFUNDS = 500  # of one payment
MAX_LINES = 100  # of one dispute
MAX_NOTIFICATIONS = 1000  # in one message


def safe_outcome(operation: Operation, said: object) -> Outcome:
    """Return the provider's answer about an operation, safe to record.

    If its verdict, its amount or the address of the confirmation page is invalid, report a discrepancy and
    return UNKNOWN.
    """
    read = _read_fields(said, Outcome, OUTCOME, operation=str(operation.pk))
    if isinstance(said, Outcome) and _is_valid(operation, said, read):
        return Outcome(**read)
    reporting.report_operation(operation, kinds.UNREADABLE_ANSWER, to=operation.kind)
    return Outcome(Verdict.UNKNOWN, reference=read["reference"])


def safe_notifications(said: Iterable[object]) -> Iterator[Notification]:
    """Yield up to MAX_NOTIFICATIONS notifications of a message, with placeholders for invalid fields."""
    for told in islice(said, MAX_NOTIFICATIONS):
        yield Notification(**_read_fields(told, Notification, NOTIFICATION))


def safe_disputes(said: Iterable[object], *, now: datetime) -> Iterator[DisputeRecord]:
    """Yield up to MAX_DISPUTES disputes of a payment, safe to book. `now` replaces an invalid `opened_at`."""
    for told in islice(said, MAX_DISPUTES):
        read = _read_fields(told, DisputeRecord, DISPUTE)
        lines = tuple(_read_dated_record(line, DisputeLine, LINE, now) for line in read["lines"][:MAX_LINES])
        yield DisputeRecord(**read | {"opened_at": read["opened_at"] or now, "lines": lines})


def safe_books(said: object, *, now: datetime) -> Books:
    """Return the provider's books about a payment, safe to record. `now` replaces an invalid time."""
    read = _read_fields(said, Books, BOOKS)
    capture = read["capture"]
    return Books(
        is_held=read["is_held"],
        capture=None if capture is None else _read_dated_record(capture, CaptureRecord, CAPTURE, now),
        refunds=tuple(
            _read_dated_record(told, RefundRecord, REFUND, now) for told in read["refunds"][:MAX_REFUNDS]
        ),
        disputes=tuple(safe_disputes(read["disputes"], now=now)),
    )


def _read_dated_record(said: object, kind: type[T], readers: Readers, now: datetime) -> T:
    """Return a record of the given kind, safe to store, with `now` in place of an invalid `at`."""
    read = _read_fields(said, kind, readers)
    return kind(**read | {"at": read["at"] or now})


def safe_entries(said: Iterable[object], *, now: datetime) -> Iterator[Entry]:
    """Yield the lines of the provider's balance, safe to store. `now` replaces an invalid `at`."""
    for told in said:
        read = _read_fields(told, Entry, ENTRY)
        yield Entry(**read | {"at": read["at"] or now})


def safe_payment_records(said: Iterable[object]) -> Iterator[PaymentRecord]:
    """Yield the payments in the provider's books, safe to restore."""
    for told in said:
        yield PaymentRecord(**_read_fields(told, PaymentRecord, PAYMENT))


def safe_payment_ids(said: Iterable[object]) -> Iterator[UUID]:
    """Yield the payment ids in the provider's answer, with the nil UUID in place of an invalid id."""
    return map(provider_fields.read_uuid, said)


def amount_rule(currency: str) -> AmountRule:
    """Return the amounts that a card can be charged in this currency.

    The minimum and the maximum are multiples of the step, and are within the service's own limits.
    """
    said = provider.current_provider().amount_rule(currency)
    step = max(1, said.step)
    minimum, maximum = max(1, said.minimum), min(said.maximum, money.MAXIMUM)
    return AmountRule(minimum=-(-minimum // step) * step, step=step, maximum=maximum // step * step)


def card_page(form: CardForm) -> str | CardPage:
    """Return the provider's card page, or its address.

    Raises ProviderUnreachable if the provider returns no page or an invalid address.
    """
    try:
        said = provider.current_provider().open_card_form(form)
    except ProviderUnreachable:
        raise
    except Exception as error:
        log.warning("provider gave no card page", error=type(error).__name__)
        raise ProviderUnreachable from error
    if isinstance(said, CardPage):
        return said
    address = provider_fields.read_address(said)
    if not address:
        _log_invalid("card_page", said)
        raise ProviderUnreachable
    return address


def _is_valid(operation: Operation, said: Outcome, read: Mapping[str, Any]) -> bool:
    """Return whether an answer's verdict, its amount, and the page where the payer confirms are valid."""
    if read["verdict"] is None or (said.amount is not None and read["amount"] is None):
        return False
    if read["verdict"] == Verdict.NEEDS_ACTION:
        return operation.kind == Operation.Kind.AUTHORIZE and bool(read["action_url"])
    return True


def _read_fields(said: object, kind: type, readers: Readers, **of: str) -> dict[str, Any]:
    """Return the value that each field's reader returns. Log each field that its reader has changed."""
    if not isinstance(said, kind):
        _log_invalid(kind.__name__.lower(), said, **of)
        return {name: read(None) for name, read in readers.items()}
    kept = {name: read(getattr(said, name)) for name, read in readers.items()}
    for name, value in kept.items():
        original = getattr(said, name)
        if type(value) is not type(original) or value != original:
            _log_invalid(name, original, **of)
    return kept


def _log_invalid(field: str, said: object, **of: str) -> None:
    """Log a provider's invalid value, up to MAX_IN_LOG characters and without card numbers."""
    try:
        text = ascii(said)
    except Exception:
        text = type(said).__name__
    shown = provider_fields.without_card_numbers(text)[:MAX_IN_LOG]
    log.warning("provider said something strange", field=field, said=shown, **of)
