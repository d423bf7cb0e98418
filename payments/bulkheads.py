"""How many threads may wait for the provider at once: payers, captures and the pumps have slots of their own.

Rules capture.slot, limit.slow_peers, pump.kinds.
"""

from django.conf import settings

from config.lib.bulkhead import Bulkhead, OneEach
from payments.models import Operation

QUEUE = 2  # waiters for each slot: nobody waits for longer than two seconds, so more would be refused
Kind = Operation.Kind

PAYERS = Bulkhead(settings.PROVIDER_SLOTS, queue=QUEUE * settings.PROVIDER_SLOTS, name="payers")
CAPTURES = Bulkhead(settings.CAPTURE_SLOTS, queue=QUEUE * settings.CAPTURE_SLOTS, name="captures")
# Callers that wait for another call's result, one for each operation: they take no slot from those that call.
JOINING = OneEach(8)
# Of each worker. What a hold's end waits for comes first; a slow call of one kind holds up no other kind. Kinds that
# share slots take turns.
PUMPS: dict[tuple[Kind, ...], Bulkhead] = {
    (Kind.CAPTURE, Kind.VOID): Bulkhead(settings.PUMP_SLOTS, name="pump_captures_voids"),
    (Kind.AUTHORIZE,): Bulkhead(settings.PUMP_SLOTS, name="pump_authorizations"),
    (Kind.REFUND,): Bulkhead(settings.PUMP_SLOTS, name="pump_refunds"),
}
INQUIRIES = Bulkhead(1, name="inquiries")  # of each worker: nobody waits for the answers
