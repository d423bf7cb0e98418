"""Immediate look-up of an operation in doubt, at an operator's request.

It does what the pump does when the operation is due.
"""

from uuid import UUID

from checkout import operation_recovery
from checkout.remedies import outstanding_refund
from checkout.remedies.status_check import NotAllowed
from config.lib import clock
from config.lib.deadline import Deadline
from payments import operation_queue, operations, restore_guard
from payments.models import Operation


def look_up_now(operation_uuid: UUID) -> Operation:
    """Ask the provider for the outcome of an operation in doubt, record it, and return the operation.

    If another process is asking at this moment, NotAllowed is raised. Raises NotAllowed,
    Operation.DoesNotExist and restore_guard.Closed. The last one is raised before the provider is asked: a restored
    database might know only the old key of a refund that was paid under a new key.
    """
    restore_guard.check()
    asked = operations.read_operation(operation_uuid)
    if not operation_queue.is_in_doubt(asked):
        raise NotAllowed("It is not in doubt any more.")
    if operation_queue.is_leased(asked, clock.now()):
        raise NotAllowed(outstanding_refund.UNDER_WAY)
    operation_queue.make_due(asked)
    deadline = Deadline.after(operations.PATIENCE)
    claimed = operation_queue.claim(limit=1, operation_uuid=operation_uuid)
    if not claimed:
        raise NotAllowed(outstanding_refund.UNDER_WAY)
    operation_recovery.finish(claimed[0], deadline)
    return operations.read_operation(operation_uuid)
