"""`sync` reads a payment's books at the provider, records what is missing here, and lets the order follow.

Notifications, the nightly reconciliation, the repair after a restore and operators' verbs call it. Rule
sync.books.
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
from payments.inquiring import inquiries
from payments.inquiring.inquiries import Claim
from payments.models import Payment
from payments.provider import Books

ASK_AGAIN = timedelta(hours=1)  # while a dispute is open: its decision can come without a notification


@dataclass(frozen=True)
class Reading:
    """A payment whose books are being recorded, with its checkout locked.

    Only facts that were recorded here before `asked_at` are compared with the books. `is_restored` means that
    this database was restored to an earlier moment. An act in the books that the database lacks can then be
    our own.
    """

    checkout: Checkout
    payment: Payment
    asked_at: datetime
    now: datetime
    is_restored: bool = False


def look_into(claim: Claim) -> None:
    """Sync the payment of a claimed inquiry. While a dispute is open on its order, ask again later."""
    sync(claim.payment_uuid)
    is_open = recorded.is_open(claim.checkout_uuid)
    inquiries.close(claim, again_at=clock.now() + ASK_AGAIN if is_open else None)


def sync(payment_uuid: UUID, *, is_restored: bool = False) -> bool:
    """Read a payment's books at the provider and record what is missing here.

    The provider is asked with no transaction open. Returns whether anything has changed. Raises
    ProviderUnreachable, Payment.DoesNotExist.
    """
    payment, asked_at = Payment.objects.get(pk=payment_uuid), clock.now()
    books = safe_answers.books(provider.current_provider().movements(payment), now=asked_at)
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(payment.checkout_uuid)
        payment = Payment.objects.get(pk=payment_uuid)
        if payment.synced_at is not None and payment.synced_at >= asked_at:
            return False  # a later reading is recorded already, and can know more than this one
        Payment.objects.filter(pk=payment_uuid).update(synced_at=asked_at)
        has_changed = follow_books(Reading(checkout, payment, asked_at, clock.now(), is_restored), books)
        if has_changed:
            checkout.touch()
    return has_changed


def follow_books(reading: Reading, books: Books) -> bool:
    """Record what is missing here, compare the rest, and settle the order.

    Returns whether anything has changed.
    """
    with settling.settled_later(reading.checkout):
        changes = [captures.follow_capture(reading, books.capture)]
        changes += [refunds.follow_refund(reading, told) for told in books.refunds]
        changes += [disputes.follow_dispute(reading, told) for told in books.disputes]
        changes.append(holds.follow_hold(reading, books))
    captures.report_missing(reading, books)
    refunds.report_missing(reading, books.refunds)
    if any(changes):
        pauses.give_back(reading.checkout, reading.now)
        if not reading.is_restored:  # the repair settles once the books of all cards are recorded
            settling.settle(reading.checkout, reading.now)
    return any(changes)
