"""What the sandbox does in a trial after the payment. It causes situations that are rare in real traffic."""

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
from webhooks import endpoint_tests, outbox, resending
from webhooks.models import Delivery, EventType

HOLD_OVER_SECONDS = 121  # a hold ends after 120 seconds
# How long the sandbox waits for a retry after the first attempt has ended. A retry is due five seconds after
# the event.
RETRY_AFTER = timedelta(seconds=4)


@contextmanager
def hold_first_attempts(case: Case) -> Iterator[None]:
    """If the case requires it, let only the sandbox make the first attempts to deliver the events in this block."""
    if not case.controls_first_attempt:
        yield
        return
    with outbox.lease_first_attempts():
        yield


def act_if_due(evidence: TrialEvidence) -> bool:
    """Take the sandbox's action once it is due, and only once. Return whether the sandbox acted."""
    act = _ACTIONS.get(evidence.trial.case)
    return act is not None and act(evidence)


def _send_again(evidence: TrialEvidence) -> bool:
    """Send checkout.authorized again after the server has answered it and has captured the order."""
    delivery = evidence.delivery_of(EventType.AUTHORIZED)
    if evidence.trial.acted_at or evidence.checkout.status != Status.CAPTURED or delivery is None:
        return False
    return delivery.status != Delivery.Status.PENDING and _resend_event(evidence, delivery)


def _resend_event(evidence: TrialEvidence, delivery: Delivery) -> bool:
    at, cause = clock.now(), Cause(f"user:{evidence.trial.user_id}")
    with suppress(resending.UnderWay, resending.DeliveryNotFound):
        resending.resend(
            evidence.trial.merchant, delivery.pk, cause=cause, although_over=True, although_delivered=True
        )
        evidence.trial.acted_at = at
    return evidence.trial.acted_at is not None


def _refuse_first(evidence: TrialEvidence) -> bool:
    """End the first attempt as if the server had answered with 500."""
    delivery = _untried_delivery(evidence)
    if delivery is None:
        return False
    endpoint_tests.refuse_first_attempt(delivery.pk)
    return True


def _drop_first(evidence: TrialEvidence) -> bool:
    """Drop the response to the first attempt, as if it had been lost.

    If the order is already captured, the service does not retry. The function then sends the event again.
    """
    delivery = _untried_delivery(evidence)
    if delivery is not None:
        endpoint_tests.drop_first_answer(delivery.pk)
        return True
    first_ended_at = evidence.authorized[0].ended_at if evidence.authorized else None
    if len(evidence.authorized) > 1 or first_ended_at is None or evidence.now - first_ended_at < RETRY_AFTER:
        return False
    return _send_again(evidence)


def _let_hold_lapse(evidence: TrialEvidence) -> bool:
    """Let the hold lapse before the first attempt is made."""
    delivery = _untried_delivery(evidence)
    if delivery is None:
        return False
    if evidence.checkout.status == Status.AUTHORIZED:
        advancing.advance(evidence.trial.merchant, evidence.checkout.pk, HOLD_OVER_SECONDS)
    endpoint_tests.send_first_attempt(delivery.pk)
    return True


def _begin_refund(evidence: TrialEvidence) -> bool:
    if evidence.refund is not None or evidence.checkout.status != Status.CAPTURED:
        return False
    cause, ref = Cause(f"user:{evidence.trial.user_id}"), f"portal_{evidence.trial.pk}"
    refunds.accept(evidence.trial.merchant, evidence.checkout.pk, ref=ref, reason="Checklist", cause=cause)
    return True


def _untried_delivery(evidence: TrialEvidence) -> Delivery | None:
    """Return the delivery of checkout.authorized if the sandbox still holds back its first attempt, else None."""
    attempts = evidence.authorized
    if len(attempts) != 1 or attempts[0].actor != outbox.SANDBOX or attempts[0].ended_at:
        return None
    return evidence.delivery_of(EventType.AUTHORIZED)


# In the other cases, the sandbox only pays the order.
_ACTIONS: dict[str, Callable[[TrialEvidence], bool]] = {
    "twice": _send_again,
    "retry": _refuse_first,
    "slow": _drop_first,
    "lapse": _let_hold_lapse,
    "refused": _begin_refund,
}
