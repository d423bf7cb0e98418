"""Creates merchants and events with the service's code, in a separate process that reads lines of JSON.

`python -m tests.chaos.webhooks.emitter` runs in the environment of a running service. Creating the events over
HTTP would take more CPU time than delivering them.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import cycle, islice
from typing import Any

import django
from django.db import Error, close_old_connections, transaction

VALID = timedelta(seconds=120)  # how long a hold is valid
PAUSE = 0.1


def subscribe(url: str) -> dict[str, str]:
    """Create a merchant with a subscription that sends all events to the URL."""
    from payments.models import Merchant
    from tests import factories

    merchant = Merchant.objects.create(name="Acme Tickets")
    registered = factories.subscribe(merchant, url=url, event_types=["*"])
    assert registered.signing_secret is not None
    return {"merchant_uuid": str(merchant.pk), "signing_secret": registered.signing_secret}


def emit(merchants: list[str], event_types: list[str], count: int, every: float) -> list[str]:
    """Emit `count` events with a pause of `every` seconds, and return their ids.

    The merchants and the types take turns. Each event has its own transaction. If the transaction fails, it
    is retried, as a merchant's backend would do.
    """
    began = time.monotonic()
    emitted = []
    pairs = zip(cycle(merchants), cycle(event_types), strict=False)
    for number, (merchant_uuid, event_type) in enumerate(islice(pairs, count)):
        time.sleep(max(0.0, began + number * every - time.monotonic()))
        emitted.append(_emit_surely(merchant_uuid, event_type))
    return emitted


def _emit_surely(merchant_uuid: str, event_type: str) -> str:
    while True:
        try:
            return _emit(merchant_uuid, event_type)
        except Error:
            close_old_connections()
            time.sleep(PAUSE)


def _emit(merchant_uuid: str, event_type: str) -> str:
    from config.lib import clock
    from payments.models import Merchant
    from webhooks import outbox
    from webhooks.models import URGENT, EventType

    kind = EventType(event_type)
    with transaction.atomic():
        merchant, now = Merchant.objects.get(pk=merchant_uuid), clock.now()
        valid_until = now + VALID if kind in URGENT else None
        return str(
            outbox.emit(merchant, kind, {"merchant": merchant.name}, at=now, valid_until=valid_until).pk
        )


ACTS: dict[str, Callable[..., Any]] = {"subscribe": subscribe, "emit": emit}


def _answer(command: dict[str, Any]) -> Any:
    return ACTS[command.pop("act")](**command)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)
