import sys
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from checkout.restore import repairing
from checkout.restore.repairing import Repair
from config.lib import clock
from payments import opening, reconciliation
from payments.provider import ProviderUnreachable

UNREACHABLE = {
    False: "The provider does not answer: nothing was compared.",
    True: "The provider does not answer. The service stays closed; what was written is kept. Run it again.",
}


class Command(BaseCommand):
    help = "Compare our operations with the provider's own list; exits 1 and prints what differs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--since-hours",
            type=float,
            help="how far to look back (48; with --repair to an hour before the last line of our history)",
        )
        parser.add_argument(
            "--repair",
            action="store_true",
            help="after a restore: write again what the provider has moved and we have lost, then open the service",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        hours = options["since_hours"]
        since = clock.now() - timedelta(hours=hours) if hours is not None else None
        try:
            if options["repair"]:
                self._repair(since or repairing.last_moment())
            else:
                self._compare(since or clock.now() - reconciliation.LOOK_BACK)
        except ProviderUnreachable:
            raise CommandError(UNREACHABLE[options["repair"]]) from None

    def _repair(self, since: datetime) -> None:
        if not opening.is_closed():
            raise CommandError("The service is open: this database was not restored. Nothing was changed.")
        self.stdout.write(f"Reading what the provider has had since {clock.iso(since)}.")
        self._tell(repairing.repair(since, self.stdout.write))

    def _tell(self, done: Repair) -> None:
        self.stdout.write(
            f"{done.payments} payments and {done.operations} operations written again, {done.booked} refunds booked as"
            " made outside. The service is open."
        )
        self.stdout.write(
            f"{len(done.unknown)} payments are of orders that are not in our books (each a discrepancy),"
            f" {len(done.left)} have an open operation, which the pumps look up."
        )

    def _compare(self, since: datetime) -> None:
        compared = reconciliation.compare(since)
        for found in compared.differences:
            self.stdout.write(
                f"{found.subject}  {found.kind}  ours: {found.ours or 'nothing'}"
                f"  theirs: {found.theirs or 'nothing'}"
            )
        self.stdout.write(
            f"{compared.ours} operations of ours, {compared.theirs} of the provider's,"
            f" {len(compared.differences)} differences"
        )
        if compared.differences:
            sys.exit(1)
