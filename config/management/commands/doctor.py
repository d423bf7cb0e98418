"""`manage.py doctor`: checks everything that the service needs (rule environment.doctor)."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from config.doctor import machine, partners, servers

CHECKS = {
    "database": servers.database,
    "replica": servers.replica,
    "Redis": servers.redis,
    "mail": servers.mail,
    "card provider": partners.card_provider,
    "SMS carrier": partners.sms_carrier,
    "disks": machine.disks,
    "folders": machine.folders,
    "certificates": machine.certificates,
    "values": machine.hints,
}


class Command(BaseCommand):
    help = (
        "Check the variables, the database, Redis, mail, the provider, the SMS carrier, the clock, disks, "
        "folders and certificates. Prints all problems. Exits with 0 if there is none (warnings do not count), "
        "with 1 if there is one, and with 78 if a variable is wrong."
    )
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        has_problem = False
        for name, check in CHECKS.items():
            findings = list(check())
            for finding in findings:
                has_problem |= not finding.is_warning
                self.stdout.write(
                    f"{'warning' if finding.is_warning else 'PROBLEM'}  {name}: {finding.sentence}"
                )
            if not findings:
                self.stdout.write(f"ok       {name}")
        if has_problem:
            sys.exit(1)
