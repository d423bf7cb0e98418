"""Limits on the number of threads that call the provider at the same time.

Payers, captures and pumps have separate limits. Rules capture.slot, limit.slow_peers, pump.kinds.
"""

from django.conf import settings

from config.lib.bulkhead import Bulkhead, KeyedLimit
from payments.models import Operation

# The number of threads that can wait for each slot. A thread waits at most two seconds, so in a longer queue the last
# threads would not get a slot in time.
QUEUE_PER_SLOT = 2
Kind = Operation.Kind

PAYERS = Bulkhead(settings.PROVIDER_SLOTS, queue=QUEUE_PER_SLOT * settings.PROVIDER_SLOTS, name="payers")
CAPTURES = Bulkhead(settings.CAPTURE_SLOTS, queue=QUEUE_PER_SLOT * settings.CAPTURE_SLOTS, name="captures")
# A thread that waits for the result of another thread's call takes one of these eight places instead of a slot for
# calls. For each operation, only one thread per process can wait.
CAPTURE_WAITERS = KeyedLimit(8)
# The slots of each worker, by the kinds of operations that share them. Kinds that share slots take turns. A slow call
# does not delay the kinds with other slots. Captures and voids come first, because no other kind ends a hold.
PUMPS: dict[tuple[Kind, ...], Bulkhead] = {
    (Kind.CAPTURE, Kind.VOID): Bulkhead(settings.PUMP_SLOTS, name="pump_captures_voids"),
    (Kind.AUTHORIZE,): Bulkhead(settings.PUMP_SLOTS, name="pump_authorizations"),
    (Kind.REFUND,): Bulkhead(settings.PUMP_SLOTS, name="pump_refunds"),
}
INQUIRIES = Bulkhead(1, name="inquiries")  # per worker; one is enough, because no caller waits for an inquiry
