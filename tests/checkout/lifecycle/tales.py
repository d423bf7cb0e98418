"""What somebody may tell us in the provider's name, and what each tale must leave behind."""

from enum import StrEnum
from uuid import uuid4

from payments.models import Merchant, Operation
from payments.provider import Record, Verdict
from tests.checkout.lifecycle.scripted import ScriptedProvider


class Tale(StrEnum):
    """A message about one of our operations."""

    FITTING = "as the provider's books have it"
    EARLY = "already succeeded, whatever the books say"
    OF_ANOTHER_AMOUNT = "of another amount"
    FOR_ANOTHER_MERCHANT = "for another merchant"
    OF_NOTHING = "of nothing that we know"

    def about(self, operation: Operation, bank: ScriptedProvider, stranger: Merchant) -> Record:
        """Return the record that the message carries."""
        payment, known = operation.payment, bank.calls.get(operation.pk)
        return Record(
            key=uuid4() if self == Tale.OF_NOTHING else operation.pk,
            kind=operation.kind,
            verdict=known.verdict if known and self != Tale.EARLY else Verdict.SUCCEEDED,
            payment=payment.pk,
            account=stranger.pk if self == Tale.FOR_ANOTHER_MERCHANT else payment.merchant_id,
            amount=operation.amount + (self == Tale.OF_ANOTHER_AMOUNT),
            currency=payment.currency,
        )

    def contradiction(self, operation: Operation, record: Record) -> str:
        """Return the discrepancy that must be left, "" if the message is to be acted upon."""
        if self == Tale.OF_NOTHING and operation.kind != "authorize" and record.verdict in MOVES:
            return f"outside_{operation.kind}"
        if self in CONTRADICTIONS:
            return CONTRADICTIONS[self]
        if operation.state == "planned" and not operation.attempts:
            return "notification_before_the_call"
        # What we gave up may have gone on there, and what still asks the payer has come to no end.
        has_an_end_of_its_own = operation.ended_at and not operation.was_given_up
        contradicts = has_an_end_of_its_own and record.verdict in ENDS and record.verdict != operation.state
        return "notification_contradicts" if contradicts else ""


MOVES = (Verdict.SUCCEEDED, Verdict.PENDING)
ENDS = (Verdict.SUCCEEDED, Verdict.DECLINED, Verdict.FAILED)
CONTRADICTIONS = {
    Tale.OF_ANOTHER_AMOUNT: "notification_of_another_amount",
    Tale.FOR_ANOTHER_MERCHANT: "notification_for_another_merchant",
    Tale.OF_NOTHING: "notification_of_nothing",
}
