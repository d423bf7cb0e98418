"""Proof of all checkouts, range by range. It can stop at any moment and continue later.

Each range of checkouts, and each month of the ledger's sums, has its own transaction. In the same transaction
the run's row records what comes next. A stopped run therefore proves the rest later, and proves no part
twice. If a checkout is made or changes after its range was proved, the hourly proof of changes covers it. A
run holds only the breaches of one range in memory. Rule money.proof.
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

GIVEN_UP = timedelta(days=7)  # a run that was stopped earlier starts again


class Busy(Exception):
    """Another process is proving all checkouts at this moment."""


class Step(NamedTuple):
    """The run after a range or a month, and the breaches found in it, which are reported already."""

    run: ProofRun
    breaches: list[Breach]


def begin(*, is_scheduled: bool = False, anew: bool = False) -> ProofRun:
    """Return the run to continue, or a new one if no run was stopped within the last week.

    With `anew`, a stopped run is given up. A run can become a scheduled run, but not the reverse. Raises
    Busy.
    """
    with transaction.atomic(durable=True):
        now = clock.now()
        for run in ProofRun.objects.select_for_update(skip_locked=True, no_key=True).filter(ended_at=None):
            if not anew and run.begun_at > now - GIVEN_UP:
                run.is_scheduled |= is_scheduled
                run.save(update_fields=["is_scheduled"])
                return run
            run.delete()
        if ProofRun.objects.filter(ended_at=None).exists():
            raise Busy
        return ProofRun.objects.create(is_scheduled=is_scheduled, next_uuid=ledger_proof.FIRST, begun_at=now)


def scheduled() -> ProofRun | None:
    """Return the run that workers are to continue, or None."""
    return ProofRun.objects.filter(ended_at=None, is_scheduled=True).first()


def steps(run: ProofRun) -> Iterator[Step]:
    """Prove range after range until the run has ended, and yield after each one. Raises Busy."""
    while run.ended_at is None:
        with transaction.atomic(durable=True):
            found = (
                ProofRun.objects.select_for_update(skip_locked=True, no_key=True).filter(pk=run.pk).first()
            )
            if found is None:
                raise Busy
            run = found
            breaches = _prove_step(run) if run.ended_at is None else []
        yield Step(run, breaches)


def _prove_step(run: ProofRun) -> list[Breach]:
    """Prove the next range, or else the next month. Report the breaches, and write what comes next."""
    found = _prove_range(run) if run.next_uuid is not None else _prove_month(run)
    run.breach_count += len(found)
    run.save()
    return ledger_proof.reported(found)


def _prove_range(run: ProofRun) -> list[Breach]:
    span = next(ledger_proof.ranges(run.next_uuid or ledger_proof.FIRST))
    checkouts, postings = ledger_proof.size_within(span)
    run.checkout_count += checkouts
    run.posting_count += postings
    run.next_uuid = ledger_proof.after(span.last) if span.last != ledger_proof.LAST else None
    return ledger_proof.breaches_within(span)


def _prove_month(run: ProofRun) -> list[Breach]:
    month = next(ledger_proof.months(run.next_month), None)
    if month is None:
        run.ended_at = clock.now()
        return []
    run.next_month = sums.next_month(month)
    return ledger_proof.breaches_of_sums(month)
