"""Who may wait for the provider at the same time: payers, captures and the pump have slots of their own.

Rules capture.slot, limit.slow_peers, pump.kinds.
"""

from django.conf import settings

from config.lib.bulkhead import Bulkhead, OneEach
from payments.models import Operation

QUEUE = 2  # so many may wait for each slot: at two seconds at most, more would be refused in the end anyway
Kind = Operation.Kind

PAYERS = Bulkhead(settings.PROVIDER_SLOTS, queue=QUEUE * settings.PROVIDER_SLOTS)
CAPTURES = Bulkhead(settings.CAPTURE_SLOTS, queue=QUEUE * settings.CAPTURE_SLOTS)
# Who waits for what another call does: one for each operation. It takes no slot from who has a call to make.
JOINING = OneEach(8)
# Of a worker. What a hold's end waits for comes first; nothing slow of one kind stands before another kind.
PUMPS: dict[tuple[Kind, ...], Bulkhead] = {
    (Kind.CAPTURE, Kind.VOID): Bulkhead(settings.PUMP_SLOTS),
    (Kind.AUTHORIZE,): Bulkhead(settings.PUMP_SLOTS),
    (Kind.REFUND,): Bulkhead(settings.PUMP_SLOTS),
}
INQUIRIES = Bulkhead(1)  # of a worker: nobody waits for what the provider says then
