"""Django's connection settings for a database, made from the parts of its address."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NAMES = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}


def connection_settings(parts: Mapping[str, str]) -> dict[str, Any]:
    """Return Django's settings for a database, or {} if `parts` is empty because the address is not set."""
    if not parts:
        return {}
    options = {"application_name": _process_name()}
    options |= {name: value for name, value in parts.items() if name not in _NAMES}
    return {_NAMES[name]: value for name, value in parts.items() if name in _NAMES} | {"OPTIONS": options}


def _process_name() -> str:
    """Return the name that this process has in PostgreSQL's list of connections, such as checkout-web."""
    if "gunicorn" in sys.argv[0]:
        return "checkout-web"
    commands = [word for word in sys.argv if word in {"worker", "beat"}] or sys.argv[1:2] or sys.argv
    return f"checkout-{Path(commands[0]).stem}"[:60]
