"""Mutants that no test can kill: the module, the original line, the changed line, and the reason."""

from typing import NamedTuple


class Equivalent(NamedTuple):
    """A mutant whose behaviour no test can distinguish from the module."""

    module: str
    line: str
    changed: str
    reason: str


EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "payments/disputes.py",
        'return rows.order_by("-status", "created_at")[:1]',
        'return rows.order_by("-status", "created_at")[: 2]',
        "Every caller takes the first row, or asks only whether there is one.",
    ),
    Equivalent(
        "payments/operation_queue.py",
        "return timedelta(seconds=min(2.0 ** min(times, 10), longest))",
        "return timedelta(seconds=min(2.0 ** min(times, 11), longest))",
        "No caller passes a longest delay of more than 600 seconds, and 2 ** 10 seconds is already longer.",
    ),
    Equivalent(
        "checkout/operation_recovery.py",
        "for operation in operation_queue.claim(limit=1, operation_uuid=operation_uuid):",
        "for operation in operation_queue.claim(limit= 2, operation_uuid=operation_uuid):",
        "The id of an operation selects at most one row.",
    ),
    Equivalent(
        "checkout/settling/cards.py",
        "key = PartKey(self.checkout.payment_id or UUID(int=0), None, share.pk)",
        "key = PartKey(self.checkout.payment_id or UUID(int= 1), None, share.pk)",
        "No payment has either id, so an order without a card has no such part.",
    ),
    *(
        Equivalent(
            "checkout/outcomes.py",
            "later = now + min(VOID_RETRY_DELAY * 4 ** min(times - 1, 7), MAX_VOID_RETRY_DELAY)",
            f"later = now + min(VOID_RETRY_DELAY * 4 ** min(times - 1, {power}), MAX_VOID_RETRY_DELAY)",
            "From the seventh refusal, the delay is longer than its maximum with any of these powers.",
        )
        for power in (6, 8)
    ),
    Equivalent(
        "checkout/settling/amounts_owed.py",
        "fits = planned.amount == self.amount or (self.at is None and planned.amount <= self.amount)",
        "fits = planned.amount == self.amount or (self.at is None and planned.amount < self.amount)",
        "The first condition covers equal amounts.",
    ),
    Equivalent(
        "checkout/settling/cards.py",
        "key = PartKey(self.checkout.payment_id or UUID(int=0), None, share.pk)",
        "key = PartKey(self.checkout.payment_id or UUID(int= 1), None, share.pk)",
        "No payment has either of these ids.",
    ),
)
