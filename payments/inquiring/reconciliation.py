"""Finds, every night and without gaps, the payments whose books must be read (rule money.reconciled).

This module only opens inquiries. For each inquiry, checkout/syncing/ reads everything that the provider has about one
payment, and records the facts that our database lacks. If a payment cannot be read, its inquiry is tried again later,
and the other payments do not wait for it.
"""

from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db.models import Q

from config.lib import batches, clock
from payments import provider, safe_answers
from payments.inquiring import inquiries
from payments.models import Payment, Reconciled

log = structlog.get_logger("payments.inquiring.reconciliation")

FIRST_LOOK_BACK = timedelta(hours=48)  # for the first run
SKEW = timedelta(minutes=5)  # margin for clock differences and for lists that are out of date
CHUNK = 500


def run(since: datetime | None = None) -> int:
    """Open an inquiry about each payment whose books have changed since the last complete run.

    Return the number of payments found. A payment is found if it has changed at the provider or in our own records.
    With an earlier `since`, the run looks further back. Raises ProviderUnreachable.

    After a complete run, the next run looks back to the start of this run. If this run fails, the next run looks back
    as far as this run. Rule money.late.
    """
    began_at = clock.now()
    since = min(filter(None, [since, last_complete_until(began_at)])) - SKEW
    count = 0
    for payment_uuids in batches.chunks(
        safe_answers.safe_payment_ids(provider.current_provider().changed(since)), CHUNK
    ):
        count += len(payment_uuids)
        inquiries.open_inquiries(payment_uuids)
    ours = _locally_changed_payments(since)
    inquiries.open_inquiries(ours)
    Reconciled.objects.update_or_create(pk=1, defaults={"until": began_at})
    log.info("reconciled", theirs=count, ours=len(ours), since=since.isoformat())
    return count + len(ours)


def last_complete_until(now: datetime) -> datetime:
    """Return the time until which the books were read without a gap.

    Before the first run, this is 48 hours ago.
    """
    done = Reconciled.objects.filter(pk=1).first()
    return done.until if done else now - FIRST_LOOK_BACK


def time_since_last_run(now: datetime) -> timedelta:
    """Return how long ago the last complete run began.

    Before the first run, return the age of our first payment.
    """
    done = Reconciled.objects.filter(pk=1).first()
    first = None if done else Payment.objects.order_by("pk").values_list("created_at", flat=True).first()
    return max(timedelta(), now - (done.until if done else first or now))


def _locally_changed_payments(since: datetime) -> list[UUID]:
    """Return the payments for which a movement was recorded, or an operation ended, since `since`."""
    recorded = Q(movements__recorded_at__gte=since)
    ended = Q(operations__ended_at__gte=since)
    return list(Payment.objects.filter(recorded | ended).order_by().values_list("pk", flat=True).distinct())
