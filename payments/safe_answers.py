"""Makes each answer from the provider safe to record, before other code reads it (rule doubt.bounded).

A value that is invalid or too long is replaced or cut, and the original is logged. An invalid answer therefore cannot
prevent the recording of money. Three values are essential: the outcome, the moved amount, and the address of the page
on which the payer confirms. If one of them is invalid, the answer becomes UNKNOWN, and a discrepancy is reported.
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

MAX_IN_LOG = 24_000  # in characters; `ascii` can need ten of them for one character
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
    "amount": provider_fields.read_positive_amount,
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
MAX_DISPUTES = 100  # per payment
MAX_REFUNDS = 500  # per payment
MAX_LINES = 100  # per dispute
MAX_NOTIFICATIONS = 1000  # per message


def safe_outcome(operation: Operation, answer: object) -> Outcome:
    """Return the provider's answer about an operation, safe to record.

    If its verdict, its amount or the address of the confirmation page is invalid, report a discrepancy and
    return UNKNOWN.
    """
    fields = _read_fields(answer, Outcome, OUTCOME, operation=str(operation.pk))
    if isinstance(answer, Outcome) and _is_valid(operation, answer, fields):
        return Outcome(**fields)
    reporting.report_operation(operation, kinds.UNREADABLE_ANSWER, to=operation.kind)
    return Outcome(Verdict.UNKNOWN, reference=fields["reference"])


def safe_notifications(notifications: Iterable[object]) -> Iterator[Notification]:
    """Yield up to MAX_NOTIFICATIONS notifications in a message, with placeholders for invalid fields."""
    for notification in islice(notifications, MAX_NOTIFICATIONS):
        yield Notification(**_read_fields(notification, Notification, NOTIFICATION))


def safe_disputes(disputes: Iterable[object], *, now: datetime) -> Iterator[DisputeRecord]:
    """Yield up to MAX_DISPUTES disputes of a payment, made safe to record. `now` replaces an invalid `opened_at`."""
    for dispute in islice(disputes, MAX_DISPUTES):
        fields = _read_fields(dispute, DisputeRecord, DISPUTE)
        lines = tuple(
            _read_dated_record(line, DisputeLine, LINE, now) for line in fields["lines"][:MAX_LINES]
        )
        yield DisputeRecord(**fields | {"opened_at": fields["opened_at"] or now, "lines": lines})


def safe_books(books: object, *, now: datetime) -> Books:
    """Return the provider's books about a payment, made safe to record. `now` replaces an invalid time."""
    fields = _read_fields(books, Books, BOOKS)
    capture = fields["capture"]
    return Books(
        is_held=fields["is_held"],
        capture=None if capture is None else _read_dated_record(capture, CaptureRecord, CAPTURE, now),
        refunds=tuple(
            _read_dated_record(refund, RefundRecord, REFUND, now)
            for refund in fields["refunds"][:MAX_REFUNDS]
        ),
        disputes=tuple(safe_disputes(fields["disputes"], now=now)),
    )


def _read_dated_record(record: object, kind: type[T], readers: Readers, now: datetime) -> T:
    """Return a record of the given kind, made safe to store. `now` replaces an invalid `at`."""
    fields = _read_fields(record, kind, readers)
    return kind(**fields | {"at": fields["at"] or now})


def safe_entries(entries: Iterable[object], *, now: datetime) -> Iterator[Entry]:
    """Yield the lines in the provider's balance, made safe to store. `now` replaces an invalid `at`."""
    for entry in entries:
        fields = _read_fields(entry, Entry, ENTRY)
        yield Entry(**fields | {"at": fields["at"] or now})


def safe_payment_records(records: Iterable[object]) -> Iterator[PaymentRecord]:
    """Yield the payments in the provider's books, made safe to restore."""
    for record in records:
        yield PaymentRecord(**_read_fields(record, PaymentRecord, PAYMENT))


def safe_payment_ids(payment_ids: Iterable[object]) -> Iterator[UUID]:
    """Yield the payment ids in the provider's answer. Each invalid id is replaced by the nil UUID."""
    return map(provider_fields.read_uuid, payment_ids)


def amount_rule(currency: str) -> AmountRule:
    """Return the amounts that can be charged to a card in this currency.

    The minimum and the maximum are multiples of the step, and they are within the service's own limits.
    """
    rule = provider.current_provider().amount_rule(currency)
    step = max(1, rule.step)
    minimum, maximum = max(1, rule.minimum), min(rule.maximum, money.MAXIMUM)
    return AmountRule(minimum=-(-minimum // step) * step, step=step, maximum=maximum // step * step)


def card_page(form: CardForm) -> str | CardPage:
    """Return the provider's card page, or its address.

    Raises ProviderUnreachable if the provider does not return a page, or if the address is invalid.
    """
    try:
        page = provider.current_provider().open_card_form(form)
    except ProviderUnreachable:
        raise
    except Exception as error:
        log.warning("provider gave no card page", error=type(error).__name__)
        raise ProviderUnreachable from error
    if isinstance(page, CardPage):
        return page
    address = provider_fields.read_address(page)
    if not address:
        _log_invalid("card_page", page)
        raise ProviderUnreachable
    return address


def _is_valid(operation: Operation, answer: Outcome, fields: Mapping[str, Any]) -> bool:
    """Return whether the verdict, the amount, and the confirmation page's address in an answer are valid."""
    if fields["verdict"] is None or (answer.amount is not None and fields["amount"] is None):
        return False
    if fields["verdict"] == Verdict.NEEDS_ACTION:
        return operation.kind == Operation.Kind.AUTHORIZE and bool(fields["action_url"])
    return True


def _read_fields(answer: object, kind: type, readers: Readers, **of: str) -> dict[str, Any]:
    """Read each field of an answer with its reader. Log each field that the reader has changed."""
    if not isinstance(answer, kind):
        _log_invalid(kind.__name__.lower(), answer, **of)
        return {name: read(None) for name, read in readers.items()}
    fields = {name: read(getattr(answer, name)) for name, read in readers.items()}
    for name, value in fields.items():
        original = getattr(answer, name)
        if type(value) is not type(original) or value != original:
            _log_invalid(name, original, **of)
    return fields


def _log_invalid(field: str, value: object, **of: str) -> None:
    """Log an invalid value from a provider, up to MAX_IN_LOG characters and without card numbers."""
    try:
        text = ascii(value)
    except Exception:
        text = type(value).__name__
    excerpt = provider_fields.without_card_numbers(text)[:MAX_IN_LOG]
    log.warning("provider said something strange", field=field, said=excerpt, **of)
