"""Opens, claims and closes inquiries.

An inquiry is about one payment. The payment's books must be read, because others might have moved its money.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from config.lib import clock
from config.lib.leases import Queue
from payments.models import Inquiry, Payment

# After this, the process must stop, because another process can claim the inquiry.
LEASE = timedelta(seconds=60)


class Claim(NamedTuple):
    """An inquiry that this process has leased until `until`, with its payment, merchant and checkout."""

    payment_uuid: UUID
    merchant_uuid: UUID
    checkout_uuid: UUID
    until: datetime


def open_inquiries(payments: Iterable[UUID]) -> None:
    """Open an inquiry about each of these payments, due now. Ids of unknown payments are ignored."""
    now = clock.now()
    known = Payment.objects.filter(pk__in=list(payments)).values_list("pk", flat=True)
    Inquiry.objects.bulk_create(
        [Inquiry(payment_id=pk, due_at=now) for pk in known],
        update_conflicts=True,
        unique_fields=["payment"],
        update_fields=["due_at"],
    )


def claim() -> Claim | None:
    """Lease and return the inquiry that has been due for the longest time, or None if no inquiry is due."""
    found = _QUEUE.take_oldest(lambda _, now: {"due_at": now + LEASE})
    if found is None:
        return None
    of = found.payment
    return Claim(of.pk, of.merchant_id, of.checkout_uuid, found.due_at)


_QUEUE = Queue(lambda: Inquiry.objects.select_related("payment"), "due_at")


def close(claim: Claim, *, again_at: datetime | None = None) -> None:
    """Delete a claimed inquiry, or make it due at `again_at`.

    If the inquiry was opened again after this process had claimed it, it stays due and is not changed.
    """
    mine = Inquiry.objects.filter(payment=claim.payment_uuid, due_at=claim.until)
    if again_at is None:
        mine.delete()
    else:
        mine.update(due_at=again_at)
