"""`manage.py createsuperuser`: creates an operator, who always has a password."""

import os
from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.core.management.base import CommandError

PASSWORD = "DJANGO_SUPERUSER_PASSWORD"


class Command(createsuperuser.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        """Create the operator. Without a password, Django's command would create an operator who cannot log in."""
        if not options["interactive"] and not os.environ.get(PASSWORD):
            raise CommandError(f"Set {PASSWORD}, or leave out --noinput to type the password.")
        return super().handle(*args, **options)
