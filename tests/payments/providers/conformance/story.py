"""A payment for the tests of a provider, with helpers that begin, send, look up and record its operations."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from uuid_utils.compat import uuid7

from config.lib import clock
from config.lib.deadline import Deadline
from payments import operations, provider, safe_answers
from payments.models import Merchant, Operation, Payment
from payments.provider import Books, Outcome, Verdict
from tests import factories
from tests.factories import CAUSE
from tests.payments.providers.conformance.desk import Card, Desk

Kind = Operation.Kind
ACTS = [Kind.AUTHORIZE, Kind.CAPTURE, Kind.VOID, Kind.REFUND]
READINGS = 5  # after at most this many readings, the books must be up to date


class Story:
    """A payment with one card. `amount` is in minor units."""

    def __init__(
        self,
        desk: Desk,
        merchant: Merchant,
        card: Card = Card.GOOD,
        amount: int = 9000,
        currency: str = "GBP",
    ) -> None:
        subject = uuid7()
        self.desk = desk
        factories.bare_checkout(merchant, subject, amount, currency)
        self.payment = Payment.objects.create(
            merchant=merchant,
            subject=subject,
            checkout_uuid=subject,
            amount=amount,
            currency=currency,
            card_token=desk.token(card, subject),
            return_url="https://pay.example/confirmed",
        )

    def begin(self, kind: Kind, amount: int = 0) -> Operation:
        """Write an operation. If `amount` is 0, the operation is for the payment's whole amount."""
        operation = operations.begin(self.payment, kind, now=clock.now(), cause=CAUSE)
        operation.amount = amount or self.payment.amount
        operation.save(update_fields=["amount"])
        return operation

    def ask(self, operation: Operation) -> Outcome:
        """Send the operation, for the first time or again under the same key."""
        return operations.perform(operation, deadline=Deadline.after(operations.PATIENCE))

    def look_up(self, operation: Operation) -> Outcome:
        return operations.look_up(self.anew(operation.pk))

    def find(self, operation: Operation) -> Outcome:
        """Look up an operation.

        If the provider neither finds the operation nor vouches that it never arrived, look it up again.
        """
        found = self.look_up(operation)
        is_open = found.verdict == Verdict.NOT_FOUND and not found.is_vouched
        return self.look_up(operation) if is_open else found

    def anew(self, pk: UUID) -> Operation:
        return Operation.objects.select_related("payment").get(pk=pk)

    def record(self, operation: Operation, outcome: Outcome) -> Outcome:
        """Record the provider's answer, and return it."""
        row = self.anew(operation.pk)
        operations.save_outcome(row, outcome, now=clock.now(), lease=row.lease_token)
        self.payment.refresh_from_db()
        return outcome

    def end(self, operation: Operation, outcome: Outcome) -> Outcome:
        """Record an answer, and return the final answer.

        If the answer is pending, settle the operation, look it up, and record the final answer too.
        """
        self.record(operation, outcome)
        if outcome.verdict != Verdict.PENDING:
            return outcome
        self.desk.settle()
        return self.record(operation, self.look_up(operation))

    def send_again(self, operation: Operation) -> Outcome:
        """Send an operation again, as another process would. Return its final outcome."""
        row = self.anew(operation.pk)
        return self.end(row, self.ask(row))

    def do(self, kind: Kind, amount: int = 0) -> Outcome:
        """Begin and send an operation. Return its final outcome."""
        operation = self.begin(kind, amount)
        return self.end(operation, self.ask(operation))

    def carry_out_preceding(self, kind: Kind) -> None:
        """Carry out the operations that must precede an operation of this kind."""
        if kind != Kind.AUTHORIZE:
            assert self.do(Kind.AUTHORIZE).verdict == Verdict.SUCCEEDED
        if kind == Kind.REFUND:
            assert self.do(Kind.CAPTURE).verdict == Verdict.SUCCEEDED

    def age_operations(self) -> None:
        """Make all the payment's operations look two days old."""
        ago = clock.now() - timedelta(days=2)
        self.payment.operations.update(created_at=ago, first_sent_at=ago, last_sent_at=ago)


def read(story: Story) -> Books:
    """Read a payment's books again and again until two readings are equal.

    The first readings can be out of date.
    """
    found: list[Books] = []
    for _ in range(READINGS):
        said = provider.current_provider().movements(story.payment)
        disputes = tuple(replace(row, lines=tuple(row.lines)) for row in said.disputes)
        found.append(safe_answers.safe_books(said, now=clock.now()))
        assert found[-1] == replace(said, refunds=tuple(said.refunds), disputes=disputes), (
            "safe as it was said"
        )
        if found[-2:] == [found[-1]] * 2:
            return found[-1]
    raise AssertionError(f"Never the same twice: {found}")
