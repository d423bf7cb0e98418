"""Reconciliation: compares our operations with the provider's books, and reports each difference.

Rules money.reconciled, money.late.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db.models import Q, QuerySet

from config.lib import batches, clock
from payments import discrepancies, due, operations, provider, safe_answers
from payments.models import Merchant, Operation
from payments.outside import acts, inquiries, returns
from payments.provider import Record

log = structlog.get_logger("payments.reconciliation")
Kind, State = Operation.Kind, Operation.State

LOOK_BACK = timedelta(hours=48)
SKEW = timedelta(minutes=5)  # between the provider's clock and ours
CHUNK = 500
# What the provider must have: what it accepted or gave a reference of its own. Other refusals leave no trace there.
KNOWN_THERE = Q(state__in=[State.SUCCEEDED, State.PENDING]) | ~Q(reference="")


@dataclass(frozen=True)
class Difference:
    """A difference between our books and the provider's about one operation; a side that lacks it is empty."""

    kind: str
    subject: UUID
    ours: str
    theirs: str
    operation: Operation | None = None
    merchant: Merchant | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """How many operations of ours and records of theirs were compared, and what differs."""

    ours: int
    theirs: int
    differences: Sequence[Difference]


def compare(since: datetime) -> Comparison:
    """Compare the provider's books with ours, both ways, and report each difference as a discrepancy.

    From theirs come the records that are new or have changed after `since`, whatever the age of our operation; from
    ours the operations created since. The status of one that has not ended may differ for 24 hours. Disputes and
    refunds that came back leave an inquiry. Raises ProviderUnreachable; what theirs showed until then is reported.
    """
    asked_at, theirs, seen = clock.now(), 0, set[UUID]()
    ours = Operation.objects.filter(pk__gte=clock.first_id(since), created_at__gte=since).filter(KNOWN_THERE)
    told = set(ours.filter(ended_at=None).values_list("pk", flat=True))
    found: list[Difference] = []
    for records in batches.chunks(safe_answers.records(provider.current().records(since - SKEW)), CHUNK):
        seen.update(record.key for record in records)
        theirs += len(records)
        found += _reported(_differences(records, asked_at))
        if came_back := payments_of_returned(records):
            inquiries.open_about(came_back)
    count = 0
    for chunk in _keyset(ours):
        count += len(chunk)
        missing = {pk for pk, ended_at in chunk if pk in told or (ended_at and ended_at < asked_at)} - seen
        found += _reported(_missing_there(missing))
    inquiries.open_about(safe_answers.payments(provider.current().disputed(since - SKEW)))
    log.info("reconciled", ours=count, theirs=theirs, differences=len(found))
    return Comparison(count, theirs, found)


def _keyset(rows: QuerySet[Operation]) -> Iterator[list[tuple[UUID, datetime | None]]]:
    """Yield chunks of ids and `ended_at`, one query for each."""
    last = UUID(int=0)
    while chunk := list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", "ended_at")[:CHUNK]):
        yield chunk
        last = chunk[-1][0]


def _differences(records: Sequence[Record], asked_at: datetime) -> Iterator[Difference]:
    known = Operation.objects.select_related("payment__merchant").in_bulk([row.key for row in records])
    given_up = [row.payment_id for row in known.values() if row.was_given_up]
    released = _released(given_up, asked_at)
    merchants = Merchant.objects.in_bulk({row.account for row in records if row.key not in known})
    strangers = [record for record in records if record.key not in known]
    payments, booked = acts.payments_of(strangers), acts.booked(strangers)
    reported = acts.of_unknown_orders(strangers)
    for record in records:
        operation = known.get(record.key)
        if record.key in booked or record.payment in reported:
            continue
        if operation is None:
            kind = acts.kind_of(record, payments, otherwise="missing_here")
            facts = acts.facts_of(record, payments) if kind in acts.KINDS.values() else {}
            merchant = merchants.get(record.account)
            yield Difference(kind, record.key, "", _theirs(record), merchant=merchant, facts=facts)
        else:
            yield from _differences_of(operation, record, asked_at, operation.payment_id in released)


def payments_of_returned(records: Sequence[Record]) -> set[UUID]:
    """Return the payments of settled refunds that have failed since, according to the records."""
    failed = {
        row.key: row.verdict for row in records if row.kind == Kind.REFUND and row.verdict in returns.REFUSED
    }
    rows = Operation.objects.filter(pk__in=failed, returned_as=None) if failed else ()
    return {row.payment_id for row in rows if returns.is_told(row, failed[row.pk])}


def _released(payments: Sequence[UUID], asked_at: datetime) -> set[UUID]:
    """Return those of the payments that a void of ours has released or is about to release."""
    on_its_way = Q(ended_at=None, created_at__gt=asked_at - due.IN_DOUBT_TOO_LONG)
    voids = Operation.objects.filter(payment__in=payments, kind=Kind.VOID)
    return set(voids.filter(Q(state=State.SUCCEEDED) | on_its_way).values_list("payment", flat=True))


def _differences_of(
    operation: Operation, record: Record, asked_at: datetime, is_released: bool
) -> Iterator[Difference]:
    payment = operation.payment
    compared = {
        "kind_differs": (operation.kind, record.kind),
        "payment_differs": (payment.pk, record.payment),
        "account_differs": (payment.merchant_id, record.account),
        "amount_differs": (
            _money(operation.amount, payment.currency),
            _money(record.amount, record.currency),
        ),
    }
    came_back = returns.has_come_back(operation, record.verdict)  # no difference: an inquiry has it booked
    if _is_status_comparable(operation, asked_at, is_released) and not came_back:
        compared["status_differs"] = (operation.state, operations.STATE_AFTER[record.verdict])
    for kind, (ours, theirs) in compared.items():
        if ours != theirs:
            yield Difference(kind, operation.pk, str(ours), str(theirs), operation, payment.merchant)


def _is_status_comparable(operation: Operation, asked_at: datetime, is_released: bool) -> bool:
    """Whether the statuses must agree: not if it may be on its way, has ended since, or was given up and released."""
    if operation.ended_at is None:
        return asked_at - operation.created_at > due.IN_DOUBT_TOO_LONG
    return operation.ended_at < asked_at and not (operation.was_given_up and is_released)


def _missing_there(missing: Iterable[UUID]) -> Iterator[Difference]:
    for operation in Operation.objects.select_related("payment__merchant").filter(pk__in=missing):
        yield Difference("missing_there", operation.pk, _ours(operation), "", operation)


def _reported(differences: Iterable[Difference]) -> Iterator[Difference]:
    """Yield the differences, each reported as a discrepancy."""
    for difference in differences:
        facts: dict[str, Any] = {"ours": difference.ours, "theirs": difference.theirs, **difference.facts}
        if difference.operation is None:
            discrepancies.report(difference.kind, difference.subject, merchant=difference.merchant, **facts)
        else:
            discrepancies.report_operation(difference.operation, difference.kind, **facts)
        yield difference


def _ours(operation: Operation) -> str:
    return f"{operation.kind} {operation.state} {_money(operation.amount, operation.payment.currency)}"


def _theirs(record: Record) -> str:
    return f"{record.kind} {record.verdict} {_money(record.amount, record.currency)}"


def _money(amount: int, currency: str) -> str:
    return f"{amount} {currency}"
