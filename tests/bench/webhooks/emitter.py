"""Emits events as the service does, in a separate process: `python -m tests.bench.webhooks.emitter`."""

import os
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import django

from tests.bench.webhooks import processes

THREADS = 8
LEAD_SECONDS = 0.3


@dataclass
class Paced:
    """Emits events at fixed times, even if earlier events are not finished (an open loop)."""

    merchants: list[Any]
    types: list[str]
    rate: float
    count: int
    start: float = 0.0
    committed: list[tuple[str, int, int]] = field(default_factory=list)
    latest: float = 0.0

    def emit_all(self) -> None:
        self.start = time.monotonic() + LEAD_SECONDS
        threads = [threading.Thread(target=self._emit_share, args=(place,)) for place in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _emit_share(self, place: int) -> None:
        from django.db import connection

        connection.ensure_connection()
        for number in range(place, self.count, THREADS):
            due = self.start + number / self.rate
            time.sleep(max(0.0, due - time.monotonic()))
            self.latest = max(self.latest, time.monotonic() - due)
            self._emit(number)
        connection.close()

    def _emit(self, number: int) -> None:
        from django.db import transaction

        place = number % len(self.merchants)
        # The shift by one in each round ensures that every merchant gets events of all types.
        turn = number // len(self.merchants) + number
        moments: list[int] = []
        with transaction.atomic():
            # This function is registered first, so that it runs directly after COMMIT, before the workers are
            # woken.
            transaction.on_commit(lambda: moments.append(time.time_ns()))
            event_id = emit(self.merchants[place], self.types[turn % len(self.types)])
        self.committed.append((event_id, moments[0], place))


def emit(merchant: Any, event_type: str) -> str:
    """Emit an event as checkout/events.py would, in the open transaction. Return the event's id."""
    from uuid_utils.compat import uuid7

    from webhooks import outbox
    from webhooks.models import EventType

    kind, now, uuid = EventType(event_type), datetime.now(UTC), uuid7()
    payload: dict[str, Any] = {"checkout_uuid": str(uuid), "merchant_order_id": "A-20417"}
    if kind == EventType.AUTHORIZED:
        payload |= {"status": "authorized", "amount": 9000, "currency": "GBP", "user_uuid": str(merchant.pk)}
        valid_until = now + timedelta(minutes=2)
        event = outbox.emit(merchant, kind, payload, at=now, checkout_uuid=uuid, valid_until=valid_until)
    else:
        payload |= {"status": "voided", "reason": "capture_window_elapsed"}
        event = outbox.emit(merchant, kind, payload, at=now, checkout_uuid=uuid)
    return str(event.pk)


def paced(merchants: list[str], types: list[str], rate: float, count: int) -> dict[str, Any]:
    """Emit `count` events for the merchants in turn, at a rate of `rate` per second.

    Return the time at which each event was committed, and the longest delay of the emitter behind its
    schedule.
    """
    from payments.models import Merchant

    known = Merchant.objects.in_bulk(merchants, field_name="pk")
    by_id = {str(key): merchant for key, merchant in known.items()}
    loop = Paced([by_id[merchant] for merchant in merchants], types, rate, count)
    loop.emit_all()
    return {"committed": loop.committed, "latest": loop.latest}


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    processes.serve({"paced": paced})
