"""Who may wait for the provider at the same time: payers, captures and the pump have slots of their own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.conf import settings

from config.lib.bulkhead import Bulkhead
from payments.models import Operation

QUEUE = 2  # so many may wait for each slot: at two seconds at most, more would be refused in the end anyway
Kind = Operation.Kind

PAYERS = Bulkhead(settings.PROVIDER_SLOTS, queue=QUEUE * settings.PROVIDER_SLOTS)
CAPTURES = Bulkhead(settings.CAPTURE_SLOTS, queue=QUEUE * settings.CAPTURE_SLOTS)
# Of a worker. What a hold's end waits for comes first; nothing slow of one kind stands before another kind.
PUMPS: dict[tuple[Kind, ...], Bulkhead] = {
    (Kind.CAPTURE, Kind.VOID): Bulkhead(settings.PUMP_SLOTS),
    (Kind.AUTHORIZE,): Bulkhead(settings.PUMP_SLOTS),
    (Kind.REFUND,): Bulkhead(settings.PUMP_SLOTS),
}

MAX_JOINING = 8
_joined: set[UUID] = set()
_joining = threading.Lock()


@contextmanager
def joining(operation_uuid: UUID) -> Iterator[bool]:
    """Whether this call may wait for what another one does: one of the process for each operation, and few in all.

    It takes no slot from who has a call to make.
    """
    with _joining:
        is_ours = operation_uuid not in _joined and len(_joined) < MAX_JOINING
        if is_ours:
            _joined.add(operation_uuid)
    try:
        yield is_ours
    finally:
        if is_ours:
            with _joining:
                _joined.discard(operation_uuid)
