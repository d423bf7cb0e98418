"""Celery tasks for checkouts: pumps, proofs and clean-ups.

A pump is a task that processes all due rows, each row in its own transaction.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from uuid import UUID

import structlog
from celery import shared_task
from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from checkout import expiry, mate_shares, operation_recovery, settling, states
from checkout.api.idempotency import KEPT_FOR
from checkout.customers import prefills
from checkout.group import pledging
from checkout.models import CALLS, Checkout, IdempotencyKey, PaymentRequest
from checkout.proof import ledger_proof, proof_runs
from checkout.states import ShareStatus, Status
from checkout.syncing import sync
from config.lib import batches, clock, connection_release, wakeup
from config.lib.bulkhead import Bulkhead
from config.lib.database import partitions
from config.lib.deadline import Deadline
from config.lib.process import liveness, tracing
from payments import bulkheads, disputes, open_operations, operation_queue, operations
from payments.inquiring import inquiries
from payments.models import Operation

log = structlog.get_logger("checkout.tasks")
BATCH = 500
# One second and a margin, so that a run waits until the next run has begun.
TICK_SECONDS = 1.05
# An unfinished proof of all checkouts may use this many seconds of each minute.
PROVING_SECONDS = 40.0
MIN_PAUSE = 0.05  # seconds between two batches, if holds end at almost the same time


@shared_task
def expire_due() -> None:
    """End the checkouts whose deadline has passed: held ones lapse, and unpaid ones expire.

    The task first ends checkouts in batches. It then ends, one by one, the checkouts whose bank has not answered. If a
    batch failed, it ends all checkouts one by one. After that, it waits for each hold that ends within this tick, and
    ends it. Without this wait, such a hold would end up to a second late. The task also ends the pledges of stopped
    merchants. Rules lapse.void, expiry.end, pledge.ends.
    """
    end = time.monotonic() + TICK_SECONDS
    for merchant_uuid, checkout_uuid in pledging.orders_of_stopped_merchants():
        _try_on(pledging.end_of_stopped_merchant, checkout_uuid, ids=(merchant_uuid, checkout_uuid))
    for status in states.DEADLINES:
        is_done = _try_on(_expire_all, status, end)
        for checkout in _one_by_one(status, is_done):
            _try_on(expiry.expire_one_if_due, checkout.pk, ids=(checkout.merchant_id, checkout.pk))
    while (seconds := expiry.seconds_to_next_lapse()) is not None:
        pause = max(seconds, MIN_PAUSE)
        if time.monotonic() + pause > end:
            return
        connection_release.release()
        time.sleep(pause)
        if not _try_on(_expire_all, Status.AUTHORIZED, end):
            return


def _expire_all(status: Status, end: float) -> None:
    """End checkouts in batches, until no deadline has passed or the tick is over."""
    while expiry.expire_due(status, BATCH) == BATCH and time.monotonic() < end:
        pass


def _one_by_one(status: Status, is_done: bool) -> QuerySet[Checkout]:
    """Return the checkouts to end one by one: those whose deadline has passed and that can end now.

    If `is_done`, the batches have succeeded, and only checkouts whose bank has not answered are left.
    """
    open_on_it = open_operations.query_open_operation(OuterRef("pk"))
    rows = expiry.exclude_blocked(Checkout.objects.late(status)).only("pk", "merchant")
    return (rows.filter(Exists(open_on_it)) if is_done else rows)[:BATCH]


@shared_task
def end_links() -> None:
    """Expire the shares whose pay links have ended (rule share.ends)."""
    late = PaymentRequest.objects.filter(
        status=ShareStatus.OPEN, expires_at__lte=Now(), checkout__status=Status.CAPTURED
    )
    late = late.exclude(Exists(disputes.open_disputes_of(OuterRef("checkout"))))
    found = late.order_by("expires_at").values_list("pk", "checkout__merchant", "checkout")
    for share_uuid, *ids in found[:BATCH]:
        _try_on(mate_shares.expire, share_uuid, ids=ids)


@shared_task
def finish_operations() -> None:
    """Finish the due operations one by one, with one operation of each kind in turn.

    The kinds take turns, so that a backlog of one kind does not delay the others. Before each operation, another run of
    this task is started, so that a slow call to the provider does not delay the other operations.
    """
    turns = [(kind, bulkhead) for kinds, bulkhead in bulkheads.PUMPS.items() for kind in kinds]
    while True in [_finish_one(kind, bulkhead) for kind, bulkhead in turns]:
        pass


def _finish_one(kind: Operation.Kind, bulkhead: Bulkhead) -> bool:
    """Finish the operation of this kind that has been due for the longest time.

    Returns False if no operation of this kind is due, or if no slot is free.
    """
    with bulkhead.slot() as slot:
        deadline = Deadline.after(operations.PATIENCE)
        claimed = operation_queue.claim(limit=1, kinds=[kind]) if slot.is_taken() else []
        if claimed:
            wakeup.wake_after_commit(settling.FINISH_OPERATIONS)
            payment = claimed[0].payment
            with tracing.span("finish", parent=claimed[0].traceparent, checkout=payment.checkout_uuid):
                ids = (payment.merchant_id, payment.checkout_uuid)
                _try_on(operation_recovery.finish_operation, claimed[0], deadline, ids=ids)
    return bool(claimed)


@shared_task
def answer_inquiries() -> None:
    """Sync the payments with a due inquiry, one by one."""
    with bulkheads.INQUIRIES.slot() as slot:
        while slot.is_taken() and (claimed := inquiries.claim()):
            ids = (claimed.merchant_uuid, claimed.checkout_uuid)
            _try_on(sync.answer_inquiry, claimed, ids=ids)


@shared_task
def delete_idempotency_keys() -> None:
    """Delete idempotency keys that are older than 24 hours, with their stored responses."""
    batches.delete(IdempotencyKey.objects.filter(pk__lt=clock.first_id(clock.now() - KEPT_FOR)))


delete_old_prefills = shared_task(prefills.delete_old, name="checkout.tasks.delete_old_prefills")


@shared_task
def make_partitions() -> None:
    """Create the partitions for API calls in advance."""
    partitions.make_ahead(CALLS)


@shared_task
def delete_old_calls() -> None:
    """Delete the API calls that are older than settings.API_CALL_RETENTION. Most are deleted with their partition."""
    before = clock.now() - settings.API_CALL_RETENTION
    partitions.drop(CALLS, before)
    partitions.delete_default_rows(CALLS, before)


@shared_task
def prove_changed() -> None:
    """Prove the ledger of all checkouts that have changed in the last two hours, and report each breach."""
    ledger_proof.report_breaches_since(clock.now() - timedelta(hours=2))


@shared_task
def prove_all() -> None:
    """Begin a proof of all checkouts, or continue an unfinished one. Then call `prove_on`."""
    with contextlib.suppress(proof_runs.ProofRunning):
        proof_runs.begin_run(is_scheduled=True)
    prove_on()


@shared_task
def prove_on() -> None:
    """Continue an unfinished proof of all checkouts for PROVING_SECONDS, and report each breach at once.

    This runs every minute. If a worker stops, only a little work is lost, and any other worker continues the proof.
    """
    end = time.monotonic() + PROVING_SECONDS
    run = proof_runs.scheduled_run()
    with contextlib.suppress(proof_runs.ProofRunning):
        for _ in proof_runs.run_steps(run) if run else ():
            if time.monotonic() > end:
                return


def _try_on(verb: Callable[..., object], row: object, *more: object, ids: Sequence[UUID] = ()) -> bool:
    """Call `verb` with a row; return whether the call succeeded.

    If the call raises an exception, it is logged, so that the task continues with the other rows. `ids` are the ids
    of the merchant and the checkout, which are added to all log lines.
    """
    liveness.record_sign()
    facts = {name: str(uuid) for name, uuid in zip(("merchant", "checkout"), ids, strict=False)}
    with structlog.contextvars.bound_contextvars(**facts):
        try:
            verb(row, *more)
        except Exception:
            log.exception("row failed", verb=verb.__name__, row=str(getattr(row, "pk", row)))
            return False
    return True
