import sys
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.lib import clock
from payments import reconciliation
from payments.provider import ProviderUnreachable


class Command(BaseCommand):
    help = "Compare our operations with the provider's own list; exits 1 and prints what differs."

    def add_arguments(self, parser: CommandParser) -> None:
        hours = reconciliation.LOOK_BACK.total_seconds() / 3600
        parser.add_argument("--since-hours", type=float, default=hours, help="how far to look back (48)")

    def handle(self, *args: Any, **options: Any) -> None:
        since = clock.now() - timedelta(hours=options["since_hours"])
        try:
            compared = reconciliation.compare(since)
        except ProviderUnreachable:
            raise CommandError("The provider does not answer: nothing was compared.") from None
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
