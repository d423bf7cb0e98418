"""Acts in the provider's own dashboard that moved a payment of ours, told apart from unknown records."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from payments.models import Booking, Discrepancy, Payment
from payments.provider import Record, Verdict

# The discrepancy for each kind: an operator asks the provider, then books the act or closes it with a note.
KINDS = {"capture": "outside_capture", "void": "outside_void", "refund": "outside_refund"}
UNKNOWN_ORDER = "unknown_order"
MOVES = (Verdict.SUCCEEDED, Verdict.PENDING)


def owners(records: Iterable[Record]) -> Mapping[UUID, UUID]:
    """Return the merchant of each payment of ours that the records name."""
    known = Payment.objects.filter(pk__in=[record.payment for record in records])
    return dict(known.values_list("pk", "merchant"))


def booked(records: Iterable[Record]) -> set[UUID]:
    """Return the keys of the records that an operator has booked, which are not reported again."""
    known = Booking.objects.filter(reference__in=[record.key for record in records])
    return {key for key in known.values_list("reference", flat=True) if key is not None}


def of_unknown_orders(records: Iterable[Record]) -> set[UUID]:
    """Return the payments of the records that were reported as an unknown order's after a restore."""
    reported = Discrepancy.objects.filter(
        kind=UNKNOWN_ORDER, subject__in=[record.payment for record in records]
    )
    return {subject for subject in reported.values_list("subject", flat=True) if subject is not None}


def kind_of(record: Record, owners: Mapping[UUID, UUID], *, otherwise: str) -> str:
    """Return the discrepancy for a record under no key of ours: `otherwise` unless it moved a payment of ours."""
    is_ours = owners.get(record.payment) == record.account
    return KINDS.get(record.kind, otherwise) if is_ours and record.verdict in MOVES else otherwise
