"""The environment variables of a local run, and the private files in the run's folder."""

import base64
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from config.local import CannotStart

FOLDER = Path(__file__).resolve().parents[2] / ".local"
SECRETS = "secrets.json"
RUNNING = "environment.json"
NAMES = (
    "ENVIRONMENT",
    "BASE_URL",
    "PORT",
    "SHOP_PORT",
    "SECRET_KEY",
    "FIELD_KEYS",
    "DATABASE_URL",
    "REDIS_URL",
)


def variables_of_run(variables: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return these variables, and the variables that a local run adds, except the engines' addresses.

    Raises CannotStart for invalid ports.
    """
    port = _read_port("PORT", variables.get("PORT") or "8000")
    shop_port = _read_port("SHOP_PORT", variables.get("SHOP_PORT") or str(port + 1))
    if port == shop_port:
        raise CannotStart(f"PORT and SHOP_PORT are both {port}: give the shop a port of its own.")
    added = {"BASE_URL": f"http://127.0.0.1:{port}", **load_keys(folder)}
    return {
        **added,
        **{name: value for name, value in variables.items() if value or name not in NAMES},
        "ENVIRONMENT": "local",
        "DATABASE_PREPARE": variables.get("DATABASE_PREPARE") or "true",
        "PORT": str(port),
        "SHOP_PORT": str(shop_port),
        "PYTHONUNBUFFERED": "1",
    }


def _read_port(name: str, value: str) -> int:
    if not value.isdecimal() or not 0 < int(value) < 65536:
        raise CannotStart(f"{name} must be a number from 1 to 65535, not {value!r}.")
    return int(value)


def load_keys(folder: Path) -> dict[str, str]:
    """Return the keys for this folder's database. The first run makes them."""
    path = folder / SECRETS
    if not path.exists():
        field_key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()  # a Fernet key
        write_private(path, {"SECRET_KEY": secrets.token_urlsafe(50), "FIELD_KEYS": field_key})
    return read_private(path)


def share_variables(environment: Mapping[str, str], folder: Path) -> Path:
    """Write a file with the variables that a command in another terminal needs during this run; return the file."""
    write_private(folder / RUNNING, {name: environment[name] for name in NAMES})
    return folder / RUNNING


def adopt_variables(folder: Path = FOLDER) -> None:
    """For manage.py, set the environment variables of the run in progress. Keep variables that are already set."""
    running = folder / RUNNING
    if os.environ.get("ENVIRONMENT", "local") == "local" and running.exists():
        for name, value in read_private(running).items():
            os.environ.setdefault(name, value)


def read_private(path: Path) -> dict[str, str]:
    """Return the content of a file that `write_private` has written."""
    content: dict[str, str] = json.loads(path.read_text())
    return content


def write_private(path: Path, content: Mapping[str, str]) -> None:
    """Write the file atomically, so that it is complete or missing. Only its owner can read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".tmp")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
    fresh.replace(path)
