"""How many threads may wait for the provider at once. Payers, captures and the pumps have separate slots.

Rules capture.slot, limit.slow_peers, pump.kinds.
"""

from django.conf import settings

from config.lib.bulkhead import Bulkhead, OneEach
from payments.models import Operation

QUEUE = 2  # waiting threads per slot; a thread waits at most two seconds, so more of them would be refused
Kind = Operation.Kind

PAYERS = Bulkhead(settings.PROVIDER_SLOTS, queue=QUEUE * settings.PROVIDER_SLOTS, name="payers")
CAPTURES = Bulkhead(settings.CAPTURE_SLOTS, queue=QUEUE * settings.CAPTURE_SLOTS, name="captures")
# Places for callers that wait for another call's result, one per operation. They take no slot from the
# callers of the provider.
JOINING = OneEach(8)
# The slots of each worker. Captures and voids come first, because the end of a hold waits for them. A slow
# call of one kind holds up no other kind. Kinds that share slots take turns.
PUMPS: dict[tuple[Kind, ...], Bulkhead] = {
    (Kind.CAPTURE, Kind.VOID): Bulkhead(settings.PUMP_SLOTS, name="pump_captures_voids"),
    (Kind.AUTHORIZE,): Bulkhead(settings.PUMP_SLOTS, name="pump_authorizations"),
    (Kind.REFUND,): Bulkhead(settings.PUMP_SLOTS, name="pump_refunds"),
}
INQUIRIES = Bulkhead(1, name="inquiries")  # per worker; no caller waits for the answers
