"""Helpers that place a merchant's orders on machines with Debian."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from typing import Any

from tests.config.deploy.debian.machine import Machine

BUYERS = ("/srv/checkout/.venv/bin/python", "/root/buyers.py", "https://pay.example")


def api_client(made: Machine, name: str) -> dict[str, str]:
    said = made.type(f"checkout-manage create_merchant '{name}' --email {name.lower()}@acme.example --json")
    return {part: json.loads(said)[part] for part in ("client_id", "client_secret")}


@contextlib.contextmanager
def buying(made: Machine, client: dict[str, str], *options: str) -> Iterator[dict[str, Any]]:
    """Let buyers order on this machine until the block ends. Yield a dictionary that then contains the outcome.

    With the option `--repeat`, the buyers repeat calls that fail.
    """
    outcome: dict[str, Any] = {}
    buyers = subprocess.Popen(
        made.inside(*BUYERS, *options), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert buyers.stdin
    try:
        buyers.stdin.write(json.dumps(client) + "\n")
        buyers.stdin.flush()
        yield outcome
        outcome |= json.loads(buyers.communicate(timeout=180)[0])
    finally:
        buyers.kill()
