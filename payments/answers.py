"""What a provider says, made fit to be recorded before anybody reads it.

Whatever is longer or stranger than expected is cut, or mapped to what is still true of it, and stands whole in the
log. So nothing that a provider says stops the recording of money. An answer whose sense is lost (what became of the
operation, how much, where the payer is asked) is no answer: UNKNOWN, and a discrepancy. Rule doubt.bounded.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

import structlog

from payments import discrepancies, provider, readable
from payments.models import Operation
from payments.provider import (
    CardForm,
    DisputeRecord,
    Notification,
    Outcome,
    ProviderUnreachable,
    Record,
    Verdict,
)

log = structlog.get_logger("payments.answers")

MAX_IN_LOG = 24_000  # characters, of which one that is strange takes up to ten
Readers = Mapping[str, Callable[[Any], Any]]
OUTCOME: Readers = {
    "verdict": readable.verdict,
    "reference": readable.reference,
    "reason": readable.reason,
    "action_url": readable.address,
    "card": readable.card,
    "amount": readable.amount,
    "is_vouched": readable.is_vouched,
}
RECORD: Readers = {
    "key": readable.uuid,
    "kind": readable.kind,
    "verdict": readable.verdict_of_record,
    "payment": readable.uuid,
    "account": readable.uuid,
    "amount": readable.amount_of_record,
    "currency": readable.currency,
}

DISPUTE: Readers = {
    "reference": readable.dispute_reference,
    "amount": readable.amount_of_record,
    "currency": readable.currency,
    "reason": readable.reason,
    "status": readable.dispute_status,
    "opened_at": readable.moment,
    "respond_by": readable.moment,
}
MAX_DISPUTES = 100  # of one payment


def outcome(operation: Operation, said: object) -> Outcome:
    """Return the answer about an operation as it may be recorded."""
    read = _read(said, Outcome, OUTCOME, operation=str(operation.pk))
    if isinstance(said, Outcome) and _has_sense(operation, said, read):
        return Outcome(**read)
    discrepancies.report_operation(operation, "unreadable_answer", to=operation.kind)
    return Outcome(Verdict.UNKNOWN, reference=read["reference"])


def record(said: object) -> Record:
    """Return a line of the provider's books as it may be compared: what can't be read equals nothing of ours."""
    read = _read(said, Record, RECORD)
    return replace(said, **read) if isinstance(said, Record) else Record(**read)


def records(said: Iterable[object]) -> Iterator[Record]:
    """Yield the lines of the provider's books as they may be compared."""
    return map(record, said)


def notification(said: object) -> Notification:
    """Return a message as it may be judged."""
    if not isinstance(said, Notification):
        return Notification("", record(said))
    if said.disputed is not None:
        return Notification(readable.message_id(said.id), disputed=readable.uuid(said.disputed))
    return Notification(readable.message_id(said.id), record(said.record))


def disputes(said: Iterable[object], *, now: datetime) -> Iterator[DisputeRecord]:
    """Yield what the provider has of a payment's disputes, as it may be booked."""
    for told in islice(said, MAX_DISPUTES):
        read = _read(told, DisputeRecord, DISPUTE)
        yield DisputeRecord(**read | {"opened_at": read["opened_at"] or now})


def payments(said: Iterable[object]) -> Iterator[UUID]:
    """Yield our ids of payments that the provider names."""
    return map(readable.uuid, said)


def card_page(form: CardForm) -> str:
    """Return the address of the page that asks for the card. Raises ProviderUnreachable, also where there is none."""
    try:
        said = provider.current().open_card_form(form)
    except ProviderUnreachable:
        raise
    except Exception as error:
        log.warning("provider gave no card page", error=type(error).__name__)
        raise ProviderUnreachable from error
    address = readable.address(said)
    if not address:
        _tell("card_page", said)
        raise ProviderUnreachable
    return address


def _has_sense(operation: Operation, said: Outcome, read: Mapping[str, Any]) -> bool:
    """Whether the answer still says what it said."""
    if read["verdict"] is None or (said.amount is not None and read["amount"] is None):
        return False
    if read["verdict"] == Verdict.NEEDS_ACTION:
        return operation.kind == Operation.Kind.AUTHORIZE and bool(read["action_url"])
    return True


def _read(said: object, kind: type, readers: Readers, **of: str) -> dict[str, Any]:
    """Return each field as it may be kept; the log tells of those that are not as they were said."""
    if not isinstance(said, kind):
        _tell(kind.__name__.lower(), said, **of)
        return {name: read(None) for name, read in readers.items()}
    kept = {name: read(getattr(said, name)) for name, read in readers.items()}
    for name, value in kept.items():
        original = getattr(said, name)
        if type(value) is not type(original) or value != original:
            _tell(name, original, **of)
    return kept


def _tell(field: str, said: object, **of: str) -> None:
    """Log what was said, whole as far as is sensible."""
    try:
        text = ascii(said)
    except Exception:
        text = type(said).__name__
    shown = readable.without_card_numbers(text)[:MAX_IN_LOG]
    log.warning("provider said something strange", field=field, said=shown, **of)
