import sys
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from checkout.restore import repair
from checkout.restore.repair import Repair
from checkout.syncing import sync
from config.lib import clock
from payments import restore_guard
from payments.inquiring import inquiries, reconciliation
from payments.models import Discrepancy
from payments.provider import ProviderUnreachable

UNREACHABLE = {
    False: "The provider does not answer. No payment was compared. Try again later.",
    True: "The provider does not answer. The service stays closed, and the rows written so far are kept. Run it again.",
}
NOT_REPAIRED = (
    "The service stays closed, because a payment could not be recorded. The log names each error. Run it again when the"
    " cause is gone, or see docs/operate.md, “Back-up and restore”."
)


class Command(BaseCommand):
    help = (
        "Read from the provider each payment that has changed there. Exits with 1 if there are discrepancies."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--since-hours",
            type=float,
            help="how far to look back (default: to the last complete run, or with --repair to our last record)",
        )
        parser.add_argument(
            "--repair",
            action="store_true",
            help="after a restore: record again the movements that the database has lost, then open the service",
        )
        parser.add_argument(
            "--open-without",
            type=UUID,
            action="append",
            default=[],
            metavar="PAYMENT",
            help="with --repair: open the service although this payment could not be recorded; can be repeated",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        hours = options["since_hours"]
        since = clock.now() - timedelta(hours=hours) if hours is not None else None
        try:
            if options["repair"]:
                self._repair(since or repair.default_start(), options["open_without"])
            else:
                self._reconcile(since)
        except ProviderUnreachable:
            raise CommandError(UNREACHABLE[options["repair"]]) from None

    def _repair(self, since: datetime, accepted: list[UUID]) -> None:
        if not restore_guard.is_closed():
            raise CommandError("The service is open: this database was not restored. Nothing was changed.")
        self.stdout.write(f"Reading the provider's payments since {clock.iso(since)}.")
        self._print_result(repair.repair(since, self.stdout.write, accepted=accepted))

    def _print_result(self, result: Repair) -> None:
        self.stdout.write(f"{result.payments} payments recorded again, {result.synced} synchronised.")
        self.stdout.write(
            f"{len(result.unknown)} payments belong to orders that the database does not have. Each is a discrepancy."
        )
        for payment_uuid in sorted(result.failed):
            self.stdout.write(f"Payment {payment_uuid} could not be recorded. It is a discrepancy.")
        if not result.is_open:
            raise CommandError(NOT_REPAIRED)
        self.stdout.write("The service is open.")

    def _reconcile(self, since: datetime | None) -> None:
        began_at = clock.now()
        count = reconciliation.run(since)
        while (claimed := inquiries.claim()) is not None:
            sync.answer_inquiry(claimed)
        found = Discrepancy.objects.filter(created_at__gte=began_at).order_by("created_at")
        for row in found:
            self.stdout.write(f"{row.subject}  {row.kind}  {row.facts}")
        self.stdout.write(f"{count} payments read, {len(found)} discrepancies")
        if found:
            sys.exit(1)
