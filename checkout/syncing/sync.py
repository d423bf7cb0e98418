"""Syncs a payment with the provider's books: records what our database lacks, and settles the order.

`sync` is called by inquiries after notifications, by the nightly reconciliation, by the repair after a restore, and
by the operators' remedies. Rule sync.books.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkout import pauses, settling
from checkout.models import Checkout
from checkout.syncing import captures, disputes, holds, refunds
from config.lib import clock
from payments import disputes as recorded
from payments import provider, safe_answers
from payments.discrepancies import kinds, reporting
from payments.inquiring import inquiries
from payments.inquiring.inquiries import Claim
from payments.models import Payment
from payments.provider import Books

# While a dispute is open, or a delayed call can still hold a declined card, the provider's books are read at this
# interval, because the provider might not send a notification.
INQUIRY_INTERVAL = timedelta(hours=1)
REPAIRED = "The payment is recorded."


@dataclass(frozen=True)
class Reading:
    """A payment that is being synced, and its locked checkout.

    The provider's books were requested at `asked_at`, so facts that we recorded later can be missing in them. If
    `is_restored`, the database was restored to an earlier moment. The service might then have made operations that
    are missing in the database.
    """

    checkout: Checkout
    payment: Payment
    asked_at: datetime
    now: datetime
    is_restored: bool = False


def answer_inquiry(claim: Claim) -> None:
    """Sync the payment of a claimed inquiry, and close the inquiry.

    While a dispute about the order is open, or a delayed call can still hold the payment's card, the inquiry becomes
    due again after an hour.
    """
    sync(claim.payment_uuid)
    now = clock.now()
    is_open = recorded.has_open_dispute(claim.checkout_uuid) or holds.can_hold_late(claim.payment_uuid, now)
    inquiries.close(claim, again_at=now + INQUIRY_INTERVAL if is_open else None)


def sync(payment_uuid: UUID, *, is_restored: bool = False) -> bool:
    """Read what the provider's books contain about a payment, record what our database lacks, and settle the order.

    If `is_restored`, the order is not settled, because the books of its other cards might not be recorded yet. No
    transaction is open during the call. Returns whether anything has changed. Raises ProviderUnreachable,
    Payment.DoesNotExist.
    """
    payment, asked_at = Payment.objects.get(pk=payment_uuid), clock.now()
    books = safe_answers.safe_books(provider.current_provider().movements(payment), now=asked_at)
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(payment.checkout_uuid)
        payment, now = Payment.objects.get(pk=payment_uuid), clock.now()
        if payment.synced_at is not None and payment.synced_at >= asked_at:
            # Books that were read later are already recorded, and they can contain more.
            return False
        Payment.objects.filter(pk=payment_uuid).update(synced_at=asked_at)
        # If the repair after a restore has failed to record this payment, this sync does it.
        is_repaired = reporting.close_resolved(kinds.NOT_REPAIRED, payment_uuid, note=REPAIRED, now=now)
        reading = Reading(checkout, payment, asked_at, now, is_restored=is_restored or is_repaired)
        has_changed = record_books(reading, books)
        if (has_changed or is_repaired) and not is_restored:
            settling.settle(checkout, now)
        if has_changed:
            checkout.touch()
    return has_changed


def record_books(reading: Reading, books: Books) -> bool:
    """Record what our database lacks, and report what the provider's books lack.

    Returns whether anything has changed. If so, the caller must settle the order.
    """
    with settling.defer_settling(reading.checkout):
        changes = [captures.sync_capture(reading, books.capture)]
        changes += [refunds.sync_refund(reading, record) for record in books.refunds]
        changes += [disputes.sync_dispute(reading, record) for record in books.disputes]
        changes.append(holds.sync_hold(reading, books))
    captures.report_missing(reading, books)
    refunds.report_missing(reading, books.refunds)
    if any(changes):
        pauses.extend_links_after_pause(reading.checkout, reading.now)
    return any(changes)
