"""Proves all checkouts, range by range. A run can be stopped at any time and continued later.

Each step proves a range of checkouts, or one month of the ledger's sums, in its own transaction. The same transaction
records the next step in the row of the run, so a continued run does not prove a part twice. If a checkout is created
or changes after its range was proved, the hourly proof of changes checks it. Only the breaches of the current step
are in memory. Rule money.proof.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from django.db import transaction

from checkout.models import ProofRun
from checkout.proof import ledger_proof
from checkout.proof.ledger_proof import Breach
from config.lib import clock
from payments.closed_days import sums

# If an unfinished run is older than this, a new run begins instead.
ABANDONED_AFTER = timedelta(days=7)


class ProofRunning(Exception):
    """Another process is running the proof of all checkouts now."""


class Step(NamedTuple):
    """The run after a step, and the breaches that this step found and reported."""

    run: ProofRun
    breaches: list[Breach]


def begin_run(*, is_scheduled: bool = False, restart: bool = False) -> ProofRun:
    """Return the unfinished run to continue, or a new run if there is no unfinished run from the last week.

    With `restart`, an unfinished run is deleted and a new one begins. With `is_scheduled`, workers continue the run
    automatically. A run that is already scheduled stays scheduled. Raises ProofRunning.
    """
    with transaction.atomic(durable=True):
        now = clock.now()
        for run in ProofRun.objects.select_for_update(skip_locked=True, no_key=True).filter(ended_at=None):
            if not restart and run.begun_at > now - ABANDONED_AFTER:
                run.is_scheduled |= is_scheduled
                run.save(update_fields=["is_scheduled"])
                return run
            run.delete()
        if ProofRun.objects.filter(ended_at=None).exists():
            raise ProofRunning
        return ProofRun.objects.create(is_scheduled=is_scheduled, next_uuid=ledger_proof.FIRST, begun_at=now)


def scheduled_run() -> ProofRun | None:
    """Return the unfinished run that the workers must continue, or None."""
    return ProofRun.objects.filter(ended_at=None, is_scheduled=True).first()


def run_steps(run: ProofRun) -> Iterator[Step]:
    """Prove one step after another until the run has ended, and yield each step. Raises ProofRunning."""
    while run.ended_at is None:
        with transaction.atomic(durable=True):
            found = (
                ProofRun.objects.select_for_update(skip_locked=True, no_key=True).filter(pk=run.pk).first()
            )
            if found is None:
                raise ProofRunning
            run = found
            breaches = _prove_step(run) if run.ended_at is None else []
        yield Step(run, breaches)


def _prove_step(run: ProofRun) -> list[Breach]:
    """Prove the next range, or the next month after the last range. Report and count the breaches."""
    found = _prove_range(run) if run.next_uuid is not None else _prove_month(run)
    run.breach_count += len(found)
    run.save()
    return ledger_proof.report_breaches(found)


def _prove_range(run: ProofRun) -> list[Breach]:
    span = next(ledger_proof.id_ranges(run.next_uuid or ledger_proof.FIRST))
    checkouts, postings = ledger_proof.count_in_range(span)
    run.checkout_count += checkouts
    run.posting_count += postings
    run.next_uuid = ledger_proof.next_id(span.last) if span.last != ledger_proof.LAST else None
    return ledger_proof.find_breaches_in_range(span)


def _prove_month(run: ProofRun) -> list[Breach]:
    month = next(ledger_proof.ledger_months(run.next_month), None)
    if month is None:
        run.ended_at = clock.now()
        return []
    run.next_month = sums.next_month(month)
    return ledger_proof.breaches_of_sums(month)
