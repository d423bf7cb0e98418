"""`manage.py erase_person`: erase a person's names, numbers and addresses (rule privacy.erase)."""

import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hosted_page.privacy import data_subjects, erasure
from hosted_page.privacy.erasure import StillNeeded


class Command(BaseCommand):
    help = "Erase a person's name, number and addresses. Refused while a payment of theirs is open. docs/privacy.md"

    def add_arguments(self, parser: CommandParser) -> None:
        person_options = parser.add_mutually_exclusive_group(required=True)
        person_options.add_argument("--phone", default="", help="their number, such as +447700900123")
        person_options.add_argument(
            "--email", default="", help="the e-mail address that they entered at an opt-in"
        )
        person_options.add_argument(
            "--again", action="store_true", help="after a restore: erase everyone in ERASURES_FILE again"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["again"]:
            self._erase_recorded_again()
            return
        try:
            erasure.erase(data_subjects.find_person(phone=options["phone"], email=options["email"]))
        except data_subjects.Unknown:
            raise CommandError("No person has this number or address. Nothing was changed.") from None
        except data_subjects.SeveralPeople:
            raise CommandError(
                "Several people have entered this address. Erase each of them by number."
            ) from None
        except StillNeeded as needed:
            lines = "\n  ".join(needed.reasons)
            raise CommandError(
                f"The person cannot be erased yet. Try again when these have ended:\n  {lines}"
            ) from None
        self.stdout.write("Erased.")
        if not settings.ERASURES_FILE:
            self.stdout.write(
                "ERASURES_FILE is not set. After a restore, the database will have this person again."
            )

    def _erase_recorded_again(self) -> None:
        if not settings.ERASURES_FILE:
            raise CommandError("Set ERASURES_FILE to the file that lists the erased people.")
        if not Path(settings.ERASURES_FILE).exists():
            raise CommandError(
                f"The file {settings.ERASURES_FILE} does not exist. Check that its disk is mounted."
            )
        results = list(erasure.erase_recorded_again())
        blocked = [(mark, reasons) for mark, reasons in results if reasons]
        self.stdout.write(f"{len(results) - len(blocked)} erased again.")
        for mark, reasons in blocked:
            self.stdout.write(f"{mark[:12]}… is still needed: {'; '.join(reasons)}")
        if blocked:
            sys.exit(1)
