"""A pytest plugin that runs PostgreSQL and Valkey for the tests.

The servers start before Django reads its settings, and stop after the last test. In a run with several processes,
each process that runs tests has its own PostgreSQL and Valkey. The process that only distributes the tests
has no servers.
"""

import atexit
import contextlib
import os
import tempfile
from pathlib import Path

import pytest

from config.local import engines, environment
from tests import pooler, template

_stack = contextlib.ExitStack()
NOWHERE = {
    "DATABASE_URL": "postgresql://checkout@/checkout?host=/nowhere",
    "REDIS_URL": "unix:///nowhere/valkey.sock",
}


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    os.environ.setdefault("ENVIRONMENT", "local")
    os.environ.setdefault("DATABASE_PREPARE", str(not os.environ.get(pooler.SWITCH)))
    os.environ.setdefault("SANDBOX_REFUND_SECONDS", "0")
    folder = Path(_stack.enter_context(tempfile.TemporaryDirectory(prefix="checkout-tests-")))
    atexit.register(_stack.close)  # in case pytest exits before it calls pytest_unconfigure
    os.environ |= NOWHERE if spreads(early_config) else start(folder)
    os.environ |= environment.load_keys(folder)


def spreads(config: pytest.Config) -> bool:
    """Return whether this process only distributes the tests to other processes."""
    is_one_of_several = "PYTEST_XDIST_WORKER" in os.environ
    return bool(config.known_args_namespace.numprocesses) and not is_one_of_several


def start(folder: Path) -> dict[str, str]:
    """Start Valkey, and PostgreSQL with a copy of the migrated database. Return their URLs."""
    template.copy_to(folder)
    started = _stack.enter_context(engines.running(folder, durable=False))
    database_url = _stack.enter_context(pooler.in_front_of(started.database_url, folder))
    return {"DATABASE_URL": database_url, "REDIS_URL": started.redis_url}


def pytest_unconfigure() -> None:
    _stack.close()
