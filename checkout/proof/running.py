"""A proof of everything, range by range: it can be stopped at any moment, and goes on where it was (rule money.proof).

Each range of checkouts, and each month of the ledger's sums, is a transaction of its own, in which the run's row says
what comes next: so a run that is stopped proves the rest later and nothing twice. What is made or changes behind it
meanwhile is proved by the hourly proof of what has changed. What it holds in memory is the breaches of one range.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from django.db import transaction

from checkout.models import ProofRun
from checkout.proof import proving
from checkout.proof.proving import Breach
from config.lib import clock
from payments.closing import sums

GIVEN_UP = timedelta(days=7)  # what was proved so long ago is proved anew


class Busy(Exception):
    """Another process is proving everything at this moment."""


class Step(NamedTuple):
    """The run after a range or a month, and the breaches that were found in it; each is a discrepancy by now."""

    run: ProofRun
    breaches: list[Breach]


def begin(*, is_scheduled: bool = False, anew: bool = False) -> ProofRun:
    """Return the run that goes on, or a new one where none was stopped within the last week.

    With `anew`, one that was stopped is given up. A run becomes a scheduled one, not the other way round.
    Raises Busy.
    """
    with transaction.atomic():
        now = clock.now()
        for run in ProofRun.objects.select_for_update(skip_locked=True).filter(ended_at=None):
            if not anew and run.begun_at > now - GIVEN_UP:
                run.is_scheduled |= is_scheduled
                run.save(update_fields=["is_scheduled"])
                return run
            run.delete()
        if ProofRun.objects.filter(ended_at=None).exists():
            raise Busy
        return ProofRun.objects.create(is_scheduled=is_scheduled, next_uuid=proving.FIRST, begun_at=now)


def scheduled() -> ProofRun | None:
    """Return the run that workers are to go on with, if there is one."""
    return ProofRun.objects.filter(ended_at=None, is_scheduled=True).first()


def steps(run: ProofRun) -> Iterator[Step]:
    """Prove range after range until the run has ended; yield after each. Raises Busy."""
    while run.ended_at is None:
        with transaction.atomic():
            found = ProofRun.objects.select_for_update(skip_locked=True).filter(pk=run.pk).first()
            if found is None:
                raise Busy
            run = found
            breaches = _step(run) if run.ended_at is None else []
        yield Step(run, breaches)


def _step(run: ProofRun) -> list[Breach]:
    """Prove the next range, or else the next month; report what is broken, and write what comes then."""
    found = _prove_range(run) if run.next_uuid is not None else _prove_month(run)
    run.breach_count += len(found)
    run.save()
    return proving.reported(found)


def _prove_range(run: ProofRun) -> list[Breach]:
    span = next(proving.ranges(run.next_uuid or proving.FIRST))
    checkouts, postings = proving.size_within(span)
    run.checkout_count += checkouts
    run.posting_count += postings
    run.next_uuid = proving.after(span.last) if span.last != proving.LAST else None
    return proving.breaches_within(span)


def _prove_month(run: ProofRun) -> list[Breach]:
    month = next(proving.months(run.next_month), None)
    if month is None:
        run.ended_at = clock.now()
        return []
    run.next_month = sums.next_month(month)
    return proving.breaches_of_sums(month)
