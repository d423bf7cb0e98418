"""`manage.py check_provider`: checks that the provider is set up for payments (rule provider.check)."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from payments import provider
from payments.provider import ProviderUnreachable


class Command(BaseCommand):
    help = (
        "Check, without moving money, that the provider is set up. Exits with 1 and prints what is missing."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            missing = list(provider.current_provider().missing())
        except ProviderUnreachable:
            raise CommandError("The provider does not answer. Check the network, then try again.") from None
        for sentence in missing or ["Nothing is missing. Payments can be taken."]:
            self.stdout.write(sentence)
        if missing:
            sys.exit(1)
