"""A process that runs many commands of manage.py: `python -m tests.journeys.clerk`.

It has the environment variables of a running service. It reads one command per line, as a JSON array of
arguments, and writes the command's result on one line. If Django were started for each command, this would
take longer than the tests themselves.

`["make_merchants", "100"]` prints a JSON list of merchants. Their passwords are hashed with a fast hash,
because a secure hash takes most of a second.
"""

import contextlib
import io
import json
import os
import sys
from typing import Any
from uuid import uuid4

import django
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import close_old_connections
from django.test import override_settings

CHEAP = "django.contrib.auth.hashers.MD5PasswordHasher"


def _run(arguments: list[str]) -> dict[str, Any]:
    """Run a command, and return its exit code and its output."""
    printed = io.StringIO()
    try:
        if arguments[0] == "make_merchants":
            return {"exit_code": 0, "printed": json.dumps(_make_merchants(int(arguments[1])))}
        # Without the redirection, the text that a command prints would be mistaken for a result line.
        with contextlib.redirect_stdout(printed):
            call_command(*arguments, stdout=printed, stderr=printed)
    except CommandError as error:
        return {"exit_code": 1, "printed": str(error)}
    except SystemExit as ended:
        return {"exit_code": ended.code, "printed": printed.getvalue()}
    finally:
        close_old_connections()
    return {"exit_code": 0, "printed": printed.getvalue()}


def _make_merchants(count: int) -> list[dict[str, str]]:
    made = []
    with override_settings(PASSWORD_HASHERS=[CHEAP, *settings.PASSWORD_HASHERS]):
        for _ in range(count):
            email = f"owner-{uuid4().hex[:8]}@acme.example"
            printed = io.StringIO()
            call_command("create_merchant", "Chaos", "--email", email, "--json", stdout=printed)
            made.append(json.loads(printed.getvalue()))
    return made


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), flush=True)
