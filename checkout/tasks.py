"""The checkout's pumps: take due rows, give each to its verb, in a transaction of its own."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

import structlog
from celery import shared_task
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from checkout import deadlines, finishing, proof, settlement
from checkout.api.calls import KEPT
from checkout.models import ApiCall, Checkout
from checkout.states import Status
from config.lib import clock, wakeup
from payments import due, operations
from payments.models import Operation
from payments.seats import Seat

log = structlog.get_logger("checkout.tasks")
BATCH = 200
Row = TypeVar("Row")


@shared_task
def keep_deadlines() -> None:
    """Let held checkouts lapse and unpaid ones expire whose time has passed (SPEC.md 3, 8)."""
    late = Q(status=Status.AUTHORIZED, capture_before__lte=Now()) | Q(
        status=Status.CREATED, payable_until__lte=Now()
    )
    # What is in doubt cannot move yet, and must not stand in the way of what can.
    silent = Q(kind=Operation.Kind.AUTHORIZE, created_at__lte=Now() - due.PATIENT_FOR)
    rows = Checkout.objects.filter(late).exclude(Exists(operations.open_on(OuterRef("pk")).exclude(silent)))
    rows = rows.order_by("capture_before", "payable_until")
    for checkout_uuid in rows.values_list("pk", flat=True)[:BATCH]:
        _alone(deadlines.keep_of, checkout_uuid)


@shared_task
def finish_operations() -> None:
    """Bring what is due at the provider nearer its end, one by one.

    With each the next run is woken, so that a provider that is slow about one holds up no other; at most half
    of the process's threads are at it.
    """
    with Seat() as seat:
        while seat.is_taken() and (claimed := due.claim(limit=1)):
            wakeup.after_commit(settlement.FINISH_OPERATIONS)
            _alone(finishing.finish, claimed[0])


@shared_task
def forget_idempotency_keys() -> None:
    """Free the keys that have been kept for their 24 hours, and the answers stored under them."""
    old = ApiCall.objects.filter(idempotency_key__isnull=False, created_at__lt=clock.now() - KEPT)
    old.update(idempotency_key=None, body=None)


@shared_task
def prove_changed() -> None:
    """Prove the ledger of what has changed in the last two hours; a breach is left for a person."""
    proof.report(clock.now() - timedelta(hours=2))


@shared_task
def prove_all() -> None:
    """Prove the whole ledger."""
    proof.report()


def finish_operations_of(checkout_uuid: UUID) -> None:
    """As `finish_operations`, for one checkout."""
    for operation in due.claim(checkout_uuid=checkout_uuid):
        finishing.finish(operation)


def _alone(verb: Callable[[Row], object], row: Row) -> None:
    """One row that fails is logged and comes again; the others go on."""
    try:
        verb(row)
    except Exception:
        log.exception("row failed", verb=verb.__name__, row=str(getattr(row, "pk", row)))
