"""`manage.py check_card_page`: run the daily check of the payment pages now (rule card_page.daily_check)."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from hosted_page.page_security import daily_check


class Command(BaseCommand):
    help = "Compare the live payment pages, their headers and scripts with this release. Exits with 1 if they differ."

    def handle(self, *args: Any, **options: Any) -> None:
        findings = daily_check.run()
        for sentence in (*findings.changes, *findings.unanswered):
            self.stdout.write(sentence)
        if findings.changes or findings.unanswered:
            sys.exit(1)
        self.stdout.write(f"{len(findings.paths)} addresses answer as this release does.")
