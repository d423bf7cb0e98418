"""A pytest plugin: PostgreSQL and Valkey are up before Django reads its settings, and gone at the end.

Each process of a run that is spread over several has engines of its own.
"""

import atexit
import contextlib
import os
import tempfile
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from config.local import engines

_stack = contextlib.ExitStack()


def start() -> None:
    """Start the engines in a folder of their own."""
    os.environ.setdefault("ENVIRONMENT", "local")
    os.environ.setdefault("SECRET_KEY", "for-tests-alone-for-tests-alone-for-tests-alone-for-tests")
    os.environ.setdefault("FIELD_KEYS", Fernet.generate_key().decode())
    os.environ.setdefault("SANDBOX_REFUND_SECONDS", "0")
    folder = Path(_stack.enter_context(tempfile.TemporaryDirectory(prefix="checkout-tests-")))
    started = _stack.enter_context(engines.running(folder, durable=False))
    atexit.register(_stack.close)  # also when pytest gives up before its last hook
    os.environ["DATABASE_URL"], os.environ["REDIS_URL"] = started.database_url, started.redis_url


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    start()


def pytest_unconfigure() -> None:
    _stack.close()
