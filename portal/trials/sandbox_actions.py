"""The sandbox's actions in a trial after the payment, which cause situations that a merchant rarely sees."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from checkout import refunds
from checkout.states import Status
from config.lib import clock
from hosted_page.sandbox import advancing
from payments.cause import Cause
from portal.trials.cases import Case
from portal.trials.evidence import TrialEvidence
from webhooks import outbox, resending, testing
from webhooks.models import Delivery, EventType

HOLD_OVER_SECONDS = 121  # seconds of advanced time after which a hold has ended
# How long the sandbox waits for a retry after the first attempt has ended. A retry is due five seconds after
# the event.
RETRY_AFTER = timedelta(seconds=4)


@contextmanager
def hold_first_attempts(case: Case) -> Iterator[None]:
    """Let the sandbox make the first attempts for events that the block writes, if the case requires that."""
    if not case.takes_first:
        yield
        return
    with outbox.lease_first_attempts():
        yield


def act_if_due(seen: TrialEvidence) -> bool:
    """Take the sandbox's action once, when it is due. Return whether the sandbox acted."""
    return _ACTS[seen.trial.case](seen)


def _do_nothing(_: TrialEvidence) -> bool:
    return False


def _send_again(seen: TrialEvidence) -> bool:
    """Send checkout.authorized again after it was answered and the order was captured."""
    sent = seen.delivery_of(EventType.AUTHORIZED)
    if seen.trial.acted_at or seen.checkout.status != Status.CAPTURED or sent is None:
        return False
    return sent.status != Delivery.Status.PENDING and _resend_event(seen, sent)


def _resend_event(seen: TrialEvidence, sent: Delivery) -> bool:
    at, cause = clock.now(), Cause(f"user:{seen.trial.user_id}")
    with suppress(resending.UnderWay, resending.DeliveryNotFound):
        resending.resend(
            seen.trial.merchant, sent.pk, cause=cause, although_over=True, although_delivered=True
        )
        seen.trial.acted_at = at
    return seen.trial.acted_at is not None


def _refuse_first(seen: TrialEvidence) -> bool:
    """Make the first attempt end as if it had been answered 500."""
    sent = _untried_delivery(seen)
    if sent is None:
        return False
    testing.refuse_first_attempt(sent.pk)
    return True


def _drop_first(seen: TrialEvidence) -> bool:
    """Drop the response to the first attempt, as if it had been lost.

    If no retry follows because the order was captured, send the event again.
    """
    sent = _untried_delivery(seen)
    if sent is not None:
        testing.drop_first_answer(sent.pk)
        return True
    tried = seen.authorized[0].ended_at if seen.authorized else None
    if len(seen.authorized) > 1 or tried is None or seen.now - tried < RETRY_AFTER:
        return False
    return _send_again(seen)


def _let_hold_lapse(seen: TrialEvidence) -> bool:
    """Let the hold lapse before the first attempt is made."""
    sent = _untried_delivery(seen)
    if sent is None:
        return False
    if seen.checkout.status == Status.AUTHORIZED:
        advancing.advance(seen.trial.merchant, seen.checkout.pk, HOLD_OVER_SECONDS)
    testing.send_first_attempt(sent.pk)
    return True


def _begin_refund(seen: TrialEvidence) -> bool:
    """Begin a refund once the order is captured."""
    if seen.refund is not None or seen.checkout.status != Status.CAPTURED:
        return False
    cause, ref = Cause(f"user:{seen.trial.user_id}"), f"portal_{seen.trial.pk}"
    refunds.accept(seen.trial.merchant, seen.checkout.pk, ref=ref, reason="Checklist", cause=cause)
    return True


def _untried_delivery(seen: TrialEvidence) -> Delivery | None:
    """Return the delivery of checkout.authorized while the sandbox holds its first attempt, else None."""
    attempts = seen.authorized
    if len(attempts) != 1 or attempts[0].actor != outbox.SANDBOX or attempts[0].ended_at:
        return None
    return seen.delivery_of(EventType.AUTHORIZED)


_ACTS: dict[str, Callable[[TrialEvidence], bool]] = {
    "twice": _send_again,
    "retry": _refuse_first,
    "slow": _drop_first,
    "lapse": _let_hold_lapse,
    "rotate": _do_nothing,
    "refused": _begin_refund,
    "lost": _do_nothing,
    "pledged": _do_nothing,
}
