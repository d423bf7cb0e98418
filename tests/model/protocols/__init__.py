"""Explicit-state models of the protocols: processes must agree even if messages are lost and processes sleep."""

from tests.model.protocols import claim, hold, idempotency, lease, pledge, rotation
from tests.model.protocols.protocol import Protocol

PROTOCOLS: tuple[Protocol, ...] = (
    hold.PROTOCOL,
    lease.PROTOCOL,
    idempotency.PROTOCOL,
    rotation.PROTOCOL,
    claim.PROTOCOL,
    pledge.PROTOCOL,
)
