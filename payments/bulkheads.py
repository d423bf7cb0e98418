"""Limits on the threads that call the provider at once. Payers, captures and pumps have separate slots.

Rules capture.slot, limit.slow_peers, pump.kinds.
"""

from django.conf import settings

from config.lib.bulkhead import Bulkhead, OneEach
from payments.models import Operation

QUEUE = 2  # waiting threads per slot; a thread waits at most two seconds, so more threads would wait in vain
Kind = Operation.Kind

PAYERS = Bulkhead(settings.PROVIDER_SLOTS, queue=QUEUE * settings.PROVIDER_SLOTS, name="payers")
CAPTURES = Bulkhead(settings.CAPTURE_SLOTS, queue=QUEUE * settings.CAPTURE_SLOTS, name="captures")
# Slots for threads that wait for the result of another thread's call, one per operation. These threads use no
# slot of the threads that call the provider.
JOINING = OneEach(8)
# The slots of each worker. Captures and voids are first, because a hold ends only with one of them. A slow
# call of one kind does not hold up the other kinds. Kinds that share slots take turns.
PUMPS: dict[tuple[Kind, ...], Bulkhead] = {
    (Kind.CAPTURE, Kind.VOID): Bulkhead(settings.PUMP_SLOTS, name="pump_captures_voids"),
    (Kind.AUTHORIZE,): Bulkhead(settings.PUMP_SLOTS, name="pump_authorizations"),
    (Kind.REFUND,): Bulkhead(settings.PUMP_SLOTS, name="pump_refunds"),
}
INQUIRIES = Bulkhead(1, name="inquiries")  # per worker; no caller waits for the answers
