"""Runs the peer in another process, and sets its switches for tests."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stripe import StripeClient

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Remote:
    """A running peer."""

    address: str

    def switch(self, name: str, **body: Any) -> Any:
        """Call one of the peer's switches, and return its response."""
        request = urllib.request.Request(f"{self.address}/_peer/{name}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def client(
        self, key: str = "sk_test_peer", account: str | None = None, *, repeats: int = 0
    ) -> StripeClient:
        """Return the official library's client for the peer, with `repeats` automatic retries."""
        addresses = {"api": self.address}  # "api" is the library's name for the base address of the API
        return StripeClient(
            key,
            stripe_account=account,
            base_addresses=addresses,  # type: ignore[arg-type]
            max_network_retries=repeats,
        )


@contextmanager
def running() -> Iterator[Remote]:
    """Run a peer for the duration of the block."""
    command = [sys.executable, "-m", "tests.payments.stripe_peer.server"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running_peer:
        try:
            assert running_peer.stdout is not None
            yield Remote(running_peer.stdout.readline().strip())
        finally:
            running_peer.terminate()
