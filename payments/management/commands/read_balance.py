from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.lib import clock
from payments.inquiring import balance
from payments.provider import ProviderUnreachable


class Command(BaseCommand):
    help = "Read fees and payouts from the merchants' balances at the provider, as the nightly task does."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--days", type=int, default=balance.LOOK_BACK.days, help="how many days to look back (default: 3)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            count = balance.read_balance(clock.now() - timedelta(days=options["days"]))
        except ProviderUnreachable:
            raise CommandError(
                "The provider does not answer. The lines read so far are kept. Run it again."
            ) from None
        self.stdout.write(f"{count} lines of merchants' balances read")
