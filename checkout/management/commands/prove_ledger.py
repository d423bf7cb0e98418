import sys
import time
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from checkout.models import ProofRun
from checkout.proof import ledger_proof, proof_runs, statements
from checkout.proof.ledger_proof import Breach
from config.lib import clock
from payments.discrepancies import kinds

QUIET_SECONDS = 10  # minimum time between two lines that report progress


class Command(BaseCommand):
    help = (
        "Check that the ledger agrees with the statuses. Exits with 1 and names the checkouts that break an "
        "invariant. You can stop it at any time. The next run continues where it stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--since-hours", type=float, help="check only the checkouts changed in the last N hours"
        )
        parser.add_argument(
            "--restart", action="store_true", help="start with the first checkout, even if a run was stopped"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        hours: float | None = options["since_hours"]
        try:
            summary = (
                self._prove_all(restart=options["restart"]) if hours is None else self._prove_changed(hours)
            )
        except proof_runs.ProofRunning:
            self.stderr.write("Another process is checking all checkouts now. Wait until it has ended.")
            sys.exit(3)
        except KeyboardInterrupt:
            self.stderr.write("Stopped. The next run continues from here.")
            sys.exit(130)
        proved = [invariant.kind for invariant in (*statements.INVARIANTS, *statements.REFERENCES)]
        for kind in proved if hours is not None else [*proved, kinds.LEDGER_SUMS]:
            self.stdout.write(f"0 cases: {kind.sentence}")
        self.stdout.write(summary)

    def _prove_changed(self, hours: float) -> str:
        since = clock.now() - timedelta(hours=hours)
        breaches = ledger_proof.report_breaches(ledger_proof.find_breaches(since))
        self._print_breaches(breaches)
        if breaches:
            sys.exit(1)
        checkouts, postings = ledger_proof.count_changed(since)
        return f"{checkouts} checkouts, {postings} postings, changed in the last {hours:g} hours"

    def _prove_all(self, *, restart: bool) -> str:
        run, printed_at = proof_runs.begin_run(restart=restart), time.monotonic()
        if run.checkout_count:
            self.stderr.write(f"Continuing: {run}, since {run.begun_at:%Y-%m-%d %H:%M} UTC")
        for step in proof_runs.run_steps(run):
            run = step.run
            self._print_breaches(step.breaches)
            if time.monotonic() - printed_at > QUIET_SECONDS:
                printed_at = time.monotonic()
                self.stderr.write(f"{run}, next {_describe_next(run)}")
        if run.breach_count:
            sys.exit(1)
        return f"{run.checkout_count} checkouts, {run.posting_count} postings"

    def _print_breaches(self, breaches: list[Breach]) -> None:
        for breach in breaches:
            self.stderr.write(f"{breach.subject}  {breach.kind.sentence}")


def _describe_next(run: ProofRun) -> str:
    """Return a text that says which checkouts or sums the run proves next.

    A range of checkouts is described by the day on which they were created, because their ids (UUIDv7) contain the
    time of creation.
    """
    if run.next_uuid is None:
        return "the ledger's sums"
    return f"checkouts of {clock.time_of_id(run.next_uuid):%Y-%m-%d}"
