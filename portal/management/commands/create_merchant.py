import json
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_email

from portal import provisioning


class Command(BaseCommand):
    help = "Create a merchant with an API key and an owner's login. Prints the credentials, which are shown only once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--email", required=True, help="the owner's e-mail address")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        name, email = options["name"].strip(), options["email"]
        if not 1 <= len(name) <= 120:
            raise CommandError("The name must have 1 to 120 characters.")
        try:
            validate_email(email)
            new_merchant = provisioning.create_merchant(name, email=email)
        except ValidationError:
            raise CommandError(f"{email} is not an e-mail address.") from None
        except provisioning.EmailTaken:
            raise CommandError(f"A person already signs in with {email}. Use another address.") from None
        credentials = {"merchant_uuid": str(new_merchant.merchant.pk), **new_merchant._asdict()}
        del credentials["merchant"]
        if options["json"]:
            self.stdout.write(json.dumps(credentials))
            return
        for label, value in credentials.items():
            self.stdout.write(f"{label:16} {value}")
        self.stdout.write("Store the credentials now. They cannot be shown again.")
