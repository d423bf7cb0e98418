"""Immediate look-up of an operation in doubt, at an operator's request.

It does what the pump does when the operation is due.
"""

from uuid import UUID

from checkout import doubt
from checkout.remedies import owed
from checkout.remedies.asking import NotAllowed
from config.lib import clock
from config.lib.deadline import Deadline
from payments import due, opening, operations
from payments.models import Operation


def look_up_now(operation_uuid: UUID) -> Operation:
    """Ask the provider for the outcome of an operation in doubt, record it, and return the operation.

    If another process is asking at this moment, NotAllowed is raised. Raises NotAllowed,
    Operation.DoesNotExist and opening.Closed. The last one is raised before the provider is asked: a restored
    database might know only the old key of a refund that was paid under a new key.
    """
    opening.check()
    asked = operations.current(operation_uuid)
    if not due.is_in_doubt(asked):
        raise NotAllowed("It is not in doubt any more.")
    if due.is_leased(asked, clock.now()):
        raise NotAllowed(owed.UNDER_WAY)
    due.make_due(asked)
    deadline = Deadline.after(operations.PATIENCE)
    claimed = due.claim(limit=1, operation_uuid=operation_uuid)
    if not claimed:
        raise NotAllowed(owed.UNDER_WAY)
    doubt.finish(claimed[0], deadline)
    return operations.current(operation_uuid)
