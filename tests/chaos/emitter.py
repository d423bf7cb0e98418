"""Makes merchants and events through the product, in a separate process that answers lines of JSON.

`python -m tests.chaos.emitter` runs in the environment of a running service. Calls over HTTP would cost the
machine more than the deliveries that they cause.
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

VALID = timedelta(seconds=120)  # the length of a hold
PAUSE = 0.1


def subscribe(url: str) -> dict[str, str]:
    """Make a merchant whose events are all sent to the URL."""
    from payments.models import Merchant
    from tests import factories

    merchant = Merchant.objects.create(name="Acme Tickets")
    registered = factories.subscribe(merchant, url=url, event_types=["*"])
    assert registered.signing_secret is not None
    return {"merchant_uuid": str(merchant.pk), "signing_secret": registered.signing_secret}


def emit(merchants: list[str], event_types: list[str], count: int, every: float) -> list[str]:
    """Emit `count` events, to the merchants and of the types in turn, one `every` seconds; return their ids.

    Each has its own commit. One that fails is tried again, as a merchant's backend would do.
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


def _answer(asked: dict[str, Any]) -> Any:
    return ACTS[asked.pop("act")](**asked)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)
