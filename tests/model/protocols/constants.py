"""Constants from the product's code that the models use. To read them, Django is loaded if necessary."""

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import django
from django.apps import apps

from config.local import environment

# The models only import the code. They do not connect to a database or a queue.
NOWHERE = {
    "ENVIRONMENT": "local",
    "DATABASE_URL": "postgresql://checkout@/checkout?host=/nowhere",
    "REDIS_URL": "unix:///nowhere/valkey.sock",
    "DJANGO_SETTINGS_MODULE": "config.settings",
}


class Constants(NamedTuple):
    """Durations from the code, in seconds."""

    lease: int  # of an operation
    deadline: int  # of a call to the provider, counted from the claim of the operation
    takeover: int  # after this time, a call without an answer loses its idempotency key


@cache
def read_constants() -> Constants:
    """Return the code's constants."""
    if not apps.ready:
        with tempfile.TemporaryDirectory() as folder:
            os.environ |= NOWHERE | environment.load_keys(Path(folder))
            django.setup()
    from checkout.api import idempotency
    from payments import operation_queue, operations

    lease, takeover = operation_queue.LEASE, idempotency.TAKEN_OVER_AFTER
    return Constants(int(lease.total_seconds()), int(operations.PATIENCE), int(takeover.total_seconds()))
