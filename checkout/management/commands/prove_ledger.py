import sys
from typing import Any

from django.core.management.base import BaseCommand

from checkout import proof


class Command(BaseCommand):
    help = "Prove the ledger against the states; exits 1 and names the checkouts that break an invariant."

    def handle(self, *args: Any, **options: Any) -> None:
        breaches = proof.breaches()
        for breach in breaches:
            self.stderr.write(f"{breach.checkout_uuid}  breaks: {breach.invariant}")
        if breaches:
            sys.exit(1)
        checkouts, postings = proof.size()
        for invariant in proof.INVARIANTS:
            self.stdout.write(f"proved: {invariant}")
        self.stdout.write(f"{checkouts} checkouts, {postings} postings")
