"""First step of every remedy: it queries the provider, and the answer decides whether the remedy is allowed.

Rule operator.asks_first.
"""

from uuid import UUID

from checkout.remedies import reasons
from checkout.syncing import sync as syncing
from payments import operations
from payments.models import Operation
from payments.provider import Outcome, ProviderUnreachable, Verdict

Kind = Operation.Kind
REFUSED = (Verdict.FAILED, Verdict.DECLINED)
VERDICT_TEXTS = {
    Verdict.SUCCEEDED: "it succeeded",
    Verdict.DECLINED: "it was declined",
    Verdict.FAILED: "it failed",
    Verdict.NEEDS_ACTION: "the payer is being asked",
    Verdict.PENDING: "it is accepted, and not settled yet",
    Verdict.NOT_FOUND: "it does not know the operation, but does not vouch that it never arrived",
    Verdict.UNKNOWN: "nothing clear",
}


class NotAllowed(Exception):
    """The remedy is not allowed, and it has not changed any row. The message gives the operator the reason."""


def sync(payment_uuid: UUID) -> None:
    """Read what the provider's books contain about a payment, and record what our database lacks.

    Every remedy that moves money calls this first. Raises NotAllowed if the provider does not answer.
    """
    try:
        syncing.sync(payment_uuid)
    except ProviderUnreachable as error:
        raise NotAllowed("The provider does not answer. Try again in a minute.") from error


def look_up(operation: Operation) -> Outcome:
    """Ask the provider for the outcome of an operation. Must be called while no transaction is open."""
    if operation.kind == Kind.CAPTURE:
        return operations.look_up_capture(operation)
    return operations.look_up(operation)


def is_vouched_absent(outcome: Outcome) -> bool:
    """Return whether the provider vouches that the operation never arrived."""
    return outcome.verdict == Verdict.NOT_FOUND and outcome.is_vouched


def describe_answer(outcome: Outcome) -> str:
    """Return a sentence for an operator about the provider's answer."""
    if is_vouched_absent(outcome):
        return "The provider vouches that the operation never arrived."
    known = reasons.TEXT_BY_REASON.get(outcome.reason or "", "")
    if known and outcome.verdict in REFUSED:
        return f"The bank said: {known[0].lower()}{known[1:]}"
    reason = f" ({outcome.reason.replace('_', ' ')})" if outcome.reason else ""
    return f"The provider says: {VERDICT_TEXTS[outcome.verdict]}{reason}."
