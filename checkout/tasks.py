"""The checkout's pumps: take due rows, give each to its verb, in a transaction of its own."""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache

import structlog
from celery import shared_task
from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from checkout import ending, finishing, shares, sharing, states
from checkout.api.idempotency import KEPT
from checkout.models import ApiCall, Checkout, PaymentRequest
from checkout.outside import disputing
from checkout.proof import proving
from checkout.states import ShareStatus, Status
from config.lib import batches, clock, wakeup
from config.lib.bulkhead import Bulkhead
from config.lib.deadline import Deadline
from config.lib.prepared import Prepared
from payments import bulkheads, disputes, due, open_operations, operations
from payments.models import Operation
from payments.outside import inquiries

log = structlog.get_logger("checkout.tasks")
BATCH = 500
TICK_SECONDS = 0.8  # less than beat's, so that one run follows the other
LOOK_AGAIN_SECONDS = 0.05


@shared_task
def expire_due() -> None:
    """Let held checkouts lapse and unpaid ones expire whose time has passed (rules lapse.void, expiry.end).

    Many at a time; then, one by one, those whose bank is silent, and all if the many failed.
    """
    for status in states.DEADLINES:
        is_done = _alone(_expire_all, status)
        for checkout in _left(status, is_done).all():
            _alone(ending.expire_one_if_due, checkout.pk)


def _expire_all(status: Status) -> None:
    """Where holds end one after the other, do not wait for the next tick."""
    end = time.monotonic() + TICK_SECONDS
    while (moved := ending.expire_due(status, BATCH)) and time.monotonic() < end:
        if moved < BATCH:
            time.sleep(LOOK_AGAIN_SECONDS)


@cache
def _left(status: Status, is_done: bool) -> Prepared[Checkout]:
    """What is in doubt cannot move yet, and must not stand in the way of what can."""
    silent = Q(kind=Operation.Kind.AUTHORIZE, created_at__lte=Now() - due.PATIENT_FOR)
    open_on_it = open_operations.open_on(OuterRef("pk"))
    rows = Checkout.objects.late(status).exclude(Exists(open_on_it.exclude(silent))).only("pk")
    return Prepared(lambda: (rows.filter(Exists(open_on_it)) if is_done else rows)[:BATCH])


@shared_task
def end_links() -> None:
    """End the pay links whose time has passed (rule share.ends)."""
    late = PaymentRequest.objects.filter(
        status=ShareStatus.OPEN, expires_at__lte=Now(), checkout__status=Status.CAPTURED
    )
    late = late.exclude(Exists(disputes.open_on(OuterRef("checkout"))))
    for share_uuid in late.order_by("expires_at").values_list("pk", flat=True)[:BATCH]:
        _alone(sharing.expire, share_uuid)


@shared_task
def finish_operations() -> None:
    """Bring what is due at the provider nearer its end, one by one.

    With each the next run is woken, so that a provider that is slow about one holds up no other.
    """
    while True in [_finish_one(kinds, bulkhead) for kinds, bulkhead in bulkheads.PUMPS.items()]:
        pass


def _finish_one(kinds: Sequence[Operation.Kind], bulkhead: Bulkhead) -> bool:
    """Finish the operation of these kinds that has been due longest; return whether there was one, and a slot."""
    with bulkhead.slot() as slot:
        deadline = Deadline.after(operations.PATIENCE)
        claimed = due.claim(limit=1, kinds=kinds) if slot.is_taken() else []
        if claimed:
            wakeup.after_commit(shares.FINISH_OPERATIONS)
            _alone(finishing.finish, claimed[0], deadline)
    return bool(claimed)


@shared_task
def answer_inquiries() -> None:
    """Ask the provider about the payments that something was told of, one by one."""
    with bulkheads.INQUIRIES.slot() as slot:
        while slot.is_taken() and (claimed := inquiries.claim()):
            _alone(disputing.look_into, claimed)


@shared_task
def delete_idempotency_keys() -> None:
    """Free the keys that have been kept for their 24 hours, and the answers stored under them."""
    old = ApiCall.objects.filter(idempotency_key__isnull=False, created_at__lt=clock.now() - KEPT)
    batches.update(old, idempotency_key=None, body=None)


@shared_task
def delete_old_calls() -> None:
    """Remove what was called so long ago that nobody asks about it any more."""
    before = clock.first_id(clock.now() - settings.API_CALL_RETENTION)
    batches.delete(ApiCall.objects.filter(pk__lt=before))


@shared_task
def prove_changed() -> None:
    """Prove the ledger of what has changed in the last two hours; a breach is left for a person."""
    proving.report(clock.now() - timedelta(hours=2))


@shared_task
def prove_all() -> None:
    """Prove the whole ledger."""
    proving.report()


def _alone(verb: Callable[..., object], row: object, *more: object) -> bool:
    """One row that fails is logged and comes again; the others go on. Returns whether it went well."""
    try:
        verb(row, *more)
    except Exception:
        log.exception("row failed", verb=verb.__name__, row=str(getattr(row, "pk", row)))
        return False
    return True
