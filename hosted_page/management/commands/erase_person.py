import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hosted_page.privacy import data_subjects, erasure
from hosted_page.privacy.erasure import StillNeeded


class Command(BaseCommand):
    help = (
        "Erase a person: name, number, addresses. Refused while something of theirs is open. docs/privacy.md"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        whom = parser.add_mutually_exclusive_group(required=True)
        whom.add_argument("--phone", default="", help="their number, as +447700900123")
        whom.add_argument("--email", default="", help="the address that they have ticked")
        whom.add_argument(
            "--again", action="store_true", help="after a restore: everybody whom ERASURES_FILE names"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["again"]:
            self._again()
            return
        try:
            erasure.erase(data_subjects.find_person(phone=options["phone"], email=options["email"]))
        except data_subjects.Unknown:
            raise CommandError("Nobody is known by this. Nothing was changed.") from None
        except data_subjects.SeveralPeople:
            raise CommandError("Several people have ticked it. Erase each by their number.") from None
        except StillNeeded as needed:
            lines = "\n  ".join(needed.reasons)
            raise CommandError(
                f"Something of theirs is open. Try again when it has ended:\n  {lines}"
            ) from None
        self.stdout.write("Erased.")
        if not settings.ERASURES_FILE:
            self.stdout.write("ERASURES_FILE is not set: a restored database will know them again.")

    def _again(self) -> None:
        if not settings.ERASURES_FILE:
            raise CommandError("Set ERASURES_FILE to the file that names who was erased.")
        if not Path(settings.ERASURES_FILE).exists():
            raise CommandError(f"There is no {settings.ERASURES_FILE}. Is its disk mounted?")
        found = list(erasure.again())
        needed = [(mark, reasons) for mark, reasons in found if reasons]
        self.stdout.write(f"{len(found) - len(needed)} erased again.")
        for mark, reasons in needed:
            self.stdout.write(f"{mark[:12]}… is still needed: {'; '.join(reasons)}")
        if needed:
            sys.exit(1)
