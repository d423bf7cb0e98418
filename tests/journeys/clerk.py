"""manage.py's commands in one process of their own: a JSON array of arguments a line in, its result a line out.

`python -m tests.journeys.clerk`, in the environment of a running service. Starting Django for each command
would take longer than the journeys themselves.
"""

import io
import json
import os
import sys
from typing import Any

import django
from django.core.management import CommandError, call_command
from django.db import close_old_connections


def _run(arguments: list[str]) -> dict[str, Any]:
    """Return the command's exit code and what it printed."""
    printed = io.StringIO()
    try:
        call_command(*arguments, stdout=printed, stderr=printed)
    except CommandError as error:
        return {"exit_code": 1, "printed": str(error)}
    except SystemExit as ended:
        return {"exit_code": ended.code, "printed": printed.getvalue()}
    finally:
        close_old_connections()
    return {"exit_code": 0, "printed": printed.getvalue()}


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), flush=True)
