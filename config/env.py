"""Typed environment variables. If one is missing or malformed, the functions raise ImproperlyConfigured."""

import os
import sys
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError, conninfo


def text(name: str, default: str | None = None) -> str:
    value = os.environ.get(name) or default
    if not value:
        raise ImproperlyConfigured(f"Set the environment variable {name}.")
    return value


def optional(name: str) -> str:
    return os.environ.get(name) or ""


def integer(name: str, default: int) -> int:
    raw = os.environ.get(name) or str(default)
    try:
        return int(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {raw!r}.") from None


def boolean(name: str, default: bool) -> bool:
    raw = (os.environ.get(name) or str(default)).lower()
    if raw not in {"true", "false", "1", "0"}:
        raise ImproperlyConfigured(f"{name} must be true or false, not {raw!r}.")
    return raw in {"true", "1"}


def words(name: str, default: str = "") -> list[str]:
    """Return the comma-separated parts of a variable, without empty ones."""
    return [part.strip() for part in (os.environ.get(name) or default).split(",") if part.strip()]


def networks(name: str) -> list[str]:
    """Return the comma-separated IP addresses and networks of a variable, as networks such as 203.0.113.7/32."""
    try:
        return [str(ip_network(part)) for part in words(name)]
    except ValueError:
        example = "203.0.113.7 or 2001:db8::/48"
        raise ImproperlyConfigured(
            f"{name} holds IP addresses or networks such as {example}, comma-separated."
        ) from None


def former_lookup_keys(former_secret_keys: list[str]) -> list[str]:
    """Return LOOKUP_KEY_FALLBACKS, plus the former SECRET_KEYs if SECRET_KEY also serves as LOOKUP_KEY.

    With these keys, the service can still find its rows after an operator has replaced SECRET_KEY.
    """
    return words("LOOKUP_KEY_FALLBACKS") + ([] if optional("LOOKUP_KEY") else former_secret_keys)


def pairs(name: str) -> dict[str, str]:
    """Return the comma-separated `name:value` parts of a variable as a dict."""
    split = [part.partition(":") for part in words(name)]
    if not all(key and value for key, _, value in split) or len({key for key, _, _ in split}) < len(split):
        raise ImproperlyConfigured(f"{name} holds pairs such as name:value, comma-separated, each name once.")
    return {key: value for key, _, value in split}


def with_localhost(address: str) -> str:
    """Replace 127.0.0.1 by `localhost` in an address, because passkeys do not work with IP addresses."""
    return address.replace("//127.0.0.1", "//localhost", 1)


def is_fernet_key(key: str) -> bool:
    try:
        Fernet(key)
    except ValueError:
        return False
    return True


def choice(name: str, choices: set[str]) -> str:
    value = text(name)
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(sorted(choices))}, not {value!r}.")
    return value


def database(name: str) -> dict[str, Any]:
    """Return Django's connection settings for a postgresql:// address."""
    try:
        parts = conninfo.conninfo_to_dict(text(name))
    except ProgrammingError:
        raise ImproperlyConfigured(f"{name} must be a postgresql:// address.") from None
    known = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    settings = {known[key]: value for key, value in parts.items() if key in known and value is not None}
    options = {key: value for key, value in parts.items() if key not in known and value is not None}
    options.setdefault("application_name", _process_name())
    return {**settings, "OPTIONS": options}


def _process_name() -> str:
    """Return this process's name for PostgreSQL's list of connections, such as checkout-web."""
    if "gunicorn" in sys.argv[0]:
        return "checkout-web"
    commands = [word for word in sys.argv if word in {"worker", "beat"}] or sys.argv[1:2] or sys.argv
    return f"checkout-{Path(commands[0]).stem}"[:60]
