"""`manage.py export_person`: print a person's data as JSON (rule privacy.export)."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from hosted_page.privacy import data_export, data_subjects
from payments.models import Merchant


class Command(BaseCommand):
    help = (
        "Print a person's data as JSON. With --merchant, only that of one merchant's orders. docs/privacy.md"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        person_options = parser.add_mutually_exclusive_group(required=True)
        person_options.add_argument("--phone", default="", help="their number, such as +447700900123")
        person_options.add_argument(
            "--email", default="", help="the e-mail address that they entered at an opt-in"
        )
        parser.add_argument("--merchant", help="the merchant's uuid")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            merchant = Merchant.objects.get(pk=options["merchant"]) if options["merchant"] else None
            data = data_export.export_data(
                data_subjects.find_person(phone=options["phone"], email=options["email"]), merchant
            )
        except data_subjects.Unknown:
            raise CommandError("No person has this number or address.") from None
        except data_subjects.SeveralPeople:
            raise CommandError(
                "Several people have entered this address. Export each of them by number."
            ) from None
        except (Merchant.DoesNotExist, ValueError):
            raise CommandError("No merchant has this uuid.") from None
        self.stdout.write(json.dumps(data, indent=2, ensure_ascii=False))
