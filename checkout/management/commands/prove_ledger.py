import sys
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from checkout.proof import invariants, proving, references
from config.lib import clock


class Command(BaseCommand):
    help = "Prove the ledger against the states; exits 1 and names the checkouts that break an invariant."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--since-hours", type=float, help="only what has changed in the last N hours")

    def handle(self, *args: Any, **options: Any) -> None:
        hours = options["since_hours"]
        since = None if hours is None else clock.now() - timedelta(hours=hours)
        breaches = proving.breaches(since)
        for breach in breaches:
            self.stderr.write(f"{breach.checkout_uuid}  breaks: {breach.invariant}")
        if breaches:
            sys.exit(1)
        checkouts, postings = proving.size(since)
        for proved in (*invariants.INVARIANTS, *references.REFERENCES):
            self.stdout.write(f"proved: {proved.promise}")
        changed = "" if since is None else f", changed in the last {hours:g} hours"
        self.stdout.write(f"{checkouts} checkouts, {postings} postings{changed}")
