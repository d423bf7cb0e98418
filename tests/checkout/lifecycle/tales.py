"""Builds true and false notifications. The service must not trust them, and must query the provider instead."""

from enum import StrEnum
from uuid import uuid4

from payments.models import Operation
from payments.provider import Notification, Verdict
from tests.checkout.lifecycle.scripted import ScriptedProvider


class Tale(StrEnum):
    """What a notification claims about an operation."""

    FITTING = "as the provider's books have it"
    EARLY = "already succeeded, whatever the books say"
    FAILED = "failed, whatever the books say"
    BARE = "only that something has changed"
    OF_OTHERS = "an act of others"
    OF_NOTHING = "of nothing that we know"

    def about(self, operation: Operation, bank: ScriptedProvider) -> Notification:
        """Return the notification about this operation."""
        known = bank.calls.get(operation.pk)
        said = {
            Tale.FITTING: known.verdict if known else Verdict.UNKNOWN,
            Tale.FAILED: Verdict.FAILED,
            Tale.BARE: Verdict.UNKNOWN,
        }.get(self, Verdict.SUCCEEDED)
        return Notification(
            id="evt_1",
            payment=uuid4() if self == Tale.OF_NOTHING else operation.payment_id,
            kind="" if self == Tale.BARE else operation.kind,
            verdict=said,
            operation=None if self in (Tale.BARE, Tale.OF_OTHERS) else operation.pk,
        )
