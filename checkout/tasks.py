"""Tasks of checkouts: pumps, proofs and clean-ups.

A pump gives each due row to its verb. Each row has its own transaction.
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
from checkout.api.idempotency import KEPT
from checkout.customers import prefills
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
TICK_SECONDS = 1.05  # beat's second and a margin: the next run begins before this one stops waiting
PROVING_SECONDS = 40.0  # of each minute, until the proof of all checkouts has ended
MIN_PAUSE = 0.05  # seconds between two batches of holds that end close together


@shared_task
def expire_due() -> None:
    """Lapse held checkouts and expire unpaid ones whose deadline has passed.

    It takes many at a time. Then it takes those whose bank is silent one by one or, if the batches failed,
    all that are late. Then it waits for each hold that ends within the tick, so that the end is not found a
    second late. Rules lapse.void, expiry.end.
    """
    end = time.monotonic() + TICK_SECONDS
    for status in states.DEADLINES:
        is_done = _try_on(_expire_all, status, end)
        for checkout in _one_by_one(status, is_done):
            _try_on(expiry.expire_one_if_due, checkout.pk, of=(checkout.merchant_id, checkout.pk))
    while (left := expiry.seconds_to_next_lapse()) is not None:
        pause = max(left, MIN_PAUSE)
        if time.monotonic() + pause > end:
            return
        connection_release.begin()
        time.sleep(pause)
        if not _try_on(_expire_all, Status.AUTHORIZED, end):
            return


def _expire_all(status: Status, end: float) -> None:
    """Expire late checkouts in batches, until none is left or the tick is over."""
    while expiry.expire_due(status, BATCH) == BATCH and time.monotonic() < end:
        pass


def _one_by_one(status: Status, is_done: bool) -> QuerySet[Checkout]:
    """Return the query of late checkouts to take one by one.

    Checkouts that an open card operation holds up are left out. With `is_done`, only those whose bank is
    silent are in it.
    """
    open_on_it = open_operations.open_on(OuterRef("pk"))
    rows = expiry.not_held_up(Checkout.objects.late(status)).only("pk", "merchant")
    return (rows.filter(Exists(open_on_it)) if is_done else rows)[:BATCH]


@shared_task
def end_links() -> None:
    """End the pay links whose time has passed (rule share.ends)."""
    late = PaymentRequest.objects.filter(
        status=ShareStatus.OPEN, expires_at__lte=Now(), checkout__status=Status.CAPTURED
    )
    late = late.exclude(Exists(disputes.open_on(OuterRef("checkout"))))
    found = late.order_by("expires_at").values_list("pk", "checkout__merchant", "checkout")
    for share_uuid, *of in found[:BATCH]:
        _try_on(mate_shares.expire, share_uuid, of=of)


@shared_task
def finish_operations() -> None:
    """Finish the due operations one by one, and the kinds in turn.

    No kind therefore waits behind a backlog of another. Each operation wakes another run first, so that a
    provider that is slow about one operation holds up no other.
    """
    turns = [(kind, bulkhead) for kinds, bulkhead in bulkheads.PUMPS.items() for kind in kinds]
    while True in [_finish_one(kind, bulkhead) for kind, bulkhead in turns]:
        pass


def _finish_one(kind: Operation.Kind, bulkhead: Bulkhead) -> bool:
    """Finish the operation of this kind that has been due longest.

    Returns False if there is none, or if no slot is free.
    """
    with bulkhead.slot() as slot:
        deadline = Deadline.after(operations.PATIENCE)
        claimed = operation_queue.claim(limit=1, kinds=[kind]) if slot.is_taken() else []
        if claimed:
            wakeup.after_commit(settling.FINISH_OPERATIONS)
            payment = claimed[0].payment
            with tracing.span("finish", parent=claimed[0].traceparent, checkout=payment.checkout_uuid):
                of = (payment.merchant_id, payment.checkout_uuid)
                _try_on(operation_recovery.finish, claimed[0], deadline, of=of)
    return bool(claimed)


@shared_task
def answer_inquiries() -> None:
    """Ask the provider about the payments with a due inquiry, one by one."""
    with bulkheads.INQUIRIES.slot() as slot:
        while slot.is_taken() and (claimed := inquiries.claim()):
            of = (claimed.merchant_uuid, claimed.checkout_uuid)
            _try_on(sync.look_into, claimed, of=of)


@shared_task
def delete_idempotency_keys() -> None:
    """Delete idempotency keys that are older than 24 hours, with the answers stored under them."""
    batches.delete(IdempotencyKey.objects.filter(pk__lt=clock.first_id(clock.now() - KEPT)))


delete_old_prefills = shared_task(prefills.delete_old, name="checkout.tasks.delete_old_prefills")


@shared_task
def make_partitions() -> None:
    """Create the partitions of API calls ahead of their time."""
    partitions.make_ahead(CALLS)


@shared_task
def delete_old_calls() -> None:
    """Drop the API calls that are older than settings.API_CALL_RETENTION, in whole partitions."""
    before = clock.now() - settings.API_CALL_RETENTION
    partitions.drop(CALLS, before)
    partitions.delete_caught(CALLS, before)


@shared_task
def prove_changed() -> None:
    """Prove the ledger of everything that has changed in the last two hours; report each breach."""
    ledger_proof.report(clock.now() - timedelta(hours=2))


@shared_task
def prove_all() -> None:
    """Begin a proof of all checkouts, or continue one that was stopped. `prove_on` does the rest."""
    with contextlib.suppress(proof_runs.Busy):
        proof_runs.begin(is_scheduled=True)
    prove_on()


@shared_task
def prove_on() -> None:
    """Continue the proof of all checkouts for a while, if one was begun; report each breach at once.

    It proves one piece each minute. If a worker ends, little work is lost, and any other worker continues.
    """
    end = time.monotonic() + PROVING_SECONDS
    run = proof_runs.scheduled()
    with contextlib.suppress(proof_runs.Busy):
        for _ in proof_runs.steps(run) if run else ():
            if time.monotonic() > end:
                return


def _try_on(verb: Callable[..., object], row: object, *more: object, of: Sequence[UUID] = ()) -> bool:
    """Run a verb on a row; return whether it succeeded. A failure is logged, so that other rows continue.

    All its log lines carry the merchant and the checkout in `of`.
    """
    liveness.sign()
    facts = {name: str(uuid) for name, uuid in zip(("merchant", "checkout"), of, strict=False)}
    with structlog.contextvars.bound_contextvars(**facts):
        try:
            verb(row, *more)
        except Exception:
            log.exception("row failed", verb=verb.__name__, row=str(getattr(row, "pk", row)))
            return False
    return True
