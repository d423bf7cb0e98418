"""Remedy that looks up an operation with an unknown outcome as soon as an operator requests it.

The pump does the same when the operation is due.
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
    """Find out and record the unknown outcome of an operation; return the operation.

    Raises NotAllowed if the outcome is already known, or if another process is handling the operation now. Raises
    Operation.DoesNotExist. In a restored database, raises restore_guard.ServiceClosed before the provider is called.
    Such a database might have only the old key of a refund that was paid under a new key.
    """
    restore_guard.check()
    operation = operations.read_operation(operation_uuid)
    if not operation_queue.is_in_doubt(operation):
        raise NotAllowed("The operation is not in doubt any more.")
    if operation_queue.is_leased(operation, clock.now()):
        raise NotAllowed(outstanding_refund.UNDER_WAY)
    operation_queue.make_due(operation)
    deadline = Deadline.after(operations.PATIENCE)
    claimed = operation_queue.claim(limit=1, operation_uuid=operation_uuid)
    if not claimed:
        raise NotAllowed(outstanding_refund.UNDER_WAY)
    operation_recovery.finish_operation(claimed[0], deadline)
    return operations.read_operation(operation_uuid)
