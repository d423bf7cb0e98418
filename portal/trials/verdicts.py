"""Verdicts: whether a trial has passed. For each case, a pure function judges only the trial's evidence."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from checkout.states import Status
from portal.trials.cases import CASES
from portal.trials.evidence import TrialEvidence, times_in_words
from webhooks import health
from webhooks.delivery import describe_error
from webhooks.models import Attempt, Delivery, EventType

LONGEST = timedelta(minutes=15)
LISTING_PERIOD = timedelta(minutes=10)  # how long a server that lists orders may take to notice a change
QUIET_PERIOD = timedelta(seconds=5)  # how long to wait for a second capture, which would fail the trial
MIN_REPEATS = 5  # a server that follows an unresolved capture for two minutes makes at least this many calls
MAX_REPEATS = 240  # two loops make this many calls in two minutes, with a Retry-After of one second
ANSWER_REMEDY = (
    "Answer 2xx once you have captured, and 5xx if you could not capture. With any other answer, you lose"
    " the hold."
)

CAPTURED_EARLIER = "Your server listed its holds and captured this one before the event came"
RUN_AGAIN = "Run the case again, and let your server list its holds less often until the event comes."


class Verdict(NamedTuple):
    """The outcome of a trial. If it has failed, `reason` explains the failure and the remedy in a few sentences."""

    has_passed: bool
    reason: str = ""


PASSED = Verdict(True)


def judge(evidence: TrialEvidence) -> Verdict | None:
    """Return the outcome of a trial, or None while it is undecided."""
    if evidence.now - evidence.trial.created_at > LONGEST:
        waited = f"15 minutes have passed without {CASES[evidence.trial.case].waits_for}."
        return Verdict(False, f"{waited} Look at the lines below, and run the case again.")
    return _JUDGES[evidence.trial.case](evidence)


def _no_capture_verdict(evidence: TrialEvidence) -> Verdict | None:
    """Return a verdict of failure if the order was not captured and can no longer be captured.

    Return None while a capture is still possible, and after a capture.
    """
    checkout = evidence.checkout
    if checkout.status == Status.VOIDED and checkout.void_reason == "merchant_cancel":
        return Verdict(
            False,
            "Your server cancelled the order. If it does not know the order, let the case pay one of your own orders.",
        )
    if checkout.status in (Status.VOIDED, Status.EXPIRED):
        return Verdict(False, f"No capture came within two minutes. {_failure_words(evidence)}")
    delivery = evidence.delivery_of(EventType.AUTHORIZED)
    is_parked = delivery is not None and delivery.status == Delivery.Status.PARKED
    if checkout.status == Status.AUTHORIZED and is_parked and not evidence.is_in_doubt:
        return Verdict(
            False, f"{_answer_words(evidence.authorized[-1])} and did not capture. {ANSWER_REMEDY}"
        )
    return None


def _failure_words(evidence: TrialEvidence) -> str:
    if not evidence.authorized:
        return "No checkout.authorized was sent. Tick this event under Webhooks, and run the case again."
    last = evidence.authorized[-1]
    if last.is_delivered:
        return f"{_answer_words(last)} to checkout.authorized: capture there before you answer."
    if last.http_status is None:
        return f"Your server gave no answer ({describe_error(last.error_message)}). Make sure that it can be reached."
    return f"{_answer_words(last)} to checkout.authorized: look for the reason in its log."


def _answer_words(attempt: Attempt) -> str:
    if attempt.http_status is None:
        return "Your server gave no answer"
    return f"Your server answered {attempt.http_status}"


def _judge_twice(evidence: TrialEvidence) -> Verdict | None:
    if verdict := _no_capture_verdict(evidence):
        return verdict
    acted_at = evidence.trial.acted_at
    repeats = [attempt for attempt in evidence.authorized if acted_at and attempt.started_at >= acted_at]
    failure_ending = "when the event came again. Only answer 2xx to an event that you know."
    return _judge_resent(evidence, repeats[0] if repeats else None, failure_ending)


def _judge_retry(evidence: TrialEvidence) -> Verdict | None:
    if captured_at := _captured_without_event(evidence):
        return _judge_single_capture(evidence, since=captured_at)
    return _judge_retried(evidence)


def _captured_without_event(evidence: TrialEvidence, attempts: int = 1) -> datetime | None:
    """Return the time of the capture if the server captured before it got attempt number `attempts` + 1 of the event.

    Return None in all other cases. A server that lists its holds can capture without waiting for the event.
    The event is then superseded.
    """
    delivery = evidence.delivery_of(EventType.AUTHORIZED)
    is_superseded = delivery is not None and delivery.status == Delivery.Status.SUPERSEDED
    return evidence.checkout.captured_at if is_superseded and len(evidence.authorized) <= attempts else None


def _judge_retried(evidence: TrialEvidence) -> Verdict | None:
    if verdict := _no_capture_verdict(evidence):
        return verdict
    retry = evidence.authorized[1] if len(evidence.authorized) > 1 else None
    return _judge_resent(
        evidence, retry, "to the retry. Capture and answer 2xx, as if the event came for the first time."
    )


def _judge_resent(evidence: TrialEvidence, repeat: Attempt | None, failure_ending: str) -> Verdict | None:
    """Judge the attempt that repeated the event. Its answer must be 2xx, and the order must be captured only once.

    `failure_ending` ends the sentence about a wrong answer.
    """
    if repeat is None or repeat.ended_at is None:
        return None
    if not repeat.is_delivered:
        return Verdict(False, f"{_answer_words(repeat)} {failure_ending}")
    if evidence.checkout.status == Status.AUTHORIZED:
        return None
    return _judge_single_capture(
        evidence, since=max(repeat.ended_at, evidence.checkout.captured_at or repeat.ended_at)
    )


def _judge_single_capture(evidence: TrialEvidence, *, since: datetime) -> Verdict | None:
    """Judge whether the server captured only once.

    The trial fails at a second capture. It passes if no second capture comes within QUIET_PERIOD after `since`.
    """
    if len(evidence.captures) > 1:
        failure = "Your server captured twice: it treated a repeated event as a new event."
        return Verdict(False, f"{failure} Keep the ids of the events that you have seen, and skip those.")
    return PASSED if evidence.now - since >= QUIET_PERIOD and evidence.captures else None


def _judge_slow(evidence: TrialEvidence) -> Verdict | None:
    first = evidence.authorized[0] if evidence.authorized else None
    if first and first.ended_at and first.error_message != health.DROPPED_BY_SANDBOX:
        error = describe_error(first.error_message)
        return Verdict(
            False,
            f"Your server could not be reached ({error}). Make sure that it runs, and run the case again.",
        )
    return _judge_retried(evidence)


def _judge_lapse(evidence: TrialEvidence) -> Verdict | None:
    if evidence.checkout.captured_at:
        return Verdict(False, f"{CAPTURED_EARLIER}, so no hold has lapsed. {RUN_AGAIN}")
    authorized = next(iter(evidence.attempts_of(EventType.AUTHORIZED)), None)
    voided = next(iter(evidence.attempts_of(EventType.VOIDED)), None)
    if not authorized or not voided or authorized.ended_at is None or voided.ended_at is None:
        return None
    if not voided.is_delivered:
        failure = f"{_answer_words(voided)} to checkout.voided."
        return Verdict(False, f"{failure} Accept the event, mark the order as not paid, and answer 2xx.")
    if authorized.http_status is None:
        error = describe_error(authorized.error_message)
        return Verdict(
            False,
            f"{_answer_words(authorized)} to checkout.authorized ({error})."
            " Make sure that it answers within 15 seconds, even if its capture is refused.",
        )
    return PASSED if evidence.now - max(authorized.ended_at, voided.ended_at) >= QUIET_PERIOD else None


def _judge_rotation(evidence: TrialEvidence) -> Verdict | None:
    if _captured_without_event(evidence, attempts=0):
        return Verdict(False, f"{CAPTURED_EARLIER}, so it has not checked the two signatures. {RUN_AGAIN}")
    first = evidence.authorized[0] if evidence.authorized else None
    if first and first.ended_at and not first.is_delivered:
        failure = f"{_answer_words(first)} to an event that both secrets signed."
        return Verdict(False, f"{failure} Accept it if any v1 of the header matches one of your secrets.")
    if first and evidence.signatures < 2:
        return Verdict(False, "Only one secret signed, because the old one was stopped. Run the case again.")
    if verdict := _no_capture_verdict(evidence):
        return verdict
    if not first or not first.ended_at or not evidence.checkout.captured_at:
        return None
    return _judge_single_capture(evidence, since=max(first.ended_at, evidence.checkout.captured_at))


def _judge_refused(evidence: TrialEvidence) -> Verdict | None:
    if verdict := _no_capture_verdict(evidence):
        return verdict
    failed_at = evidence.refund_failed_at
    if failed_at is None:
        return None
    if evidence.has_called_since(failed_at, "refund"):
        return PASSED
    if evidence.now - failed_at < LISTING_PERIOD:
        return None
    failure = "The refund failed, and your server did not read the order for ten minutes."
    return Verdict(
        False, f"{failure} No event reports it: list your checkouts by sort=updated_at every few minutes."
    )


def _judge_lost(evidence: TrialEvidence) -> Verdict | None:
    if verdict := _no_capture_verdict(evidence):
        return verdict
    captured_at = evidence.checkout.captured_at
    if captured_at is None:
        return None
    if evidence.has_called_since(captured_at, "capture"):
        return PASSED
    if evidence.now - captured_at < LISTING_PERIOD:
        return None
    failure = "The capture’s answer was lost, and your server never asked again."
    remedy = "It does not know that the order is paid. Repeat the capture, or read the order."
    return Verdict(False, f"{failure} {remedy}")


def _judge_unresolved(evidence: TrialEvidence) -> Verdict | None:
    if not evidence.is_in_doubt:
        return _no_capture_verdict(evidence)
    if evidence.checkout.status == Status.AUTHORIZED:
        return None
    times = times_in_words(evidence.times_asked_again)
    if evidence.times_asked_again < MIN_REPEATS:
        failure = f"While its capture was unresolved, your server asked again {times}."
        remedy = "Repeat the capture after each Retry-After, or read the order, until you know the outcome."
        return Verdict(False, f"{failure} {remedy}")
    if evidence.times_asked_again > MAX_REPEATS:
        failure = f"Your server asked again {times} in two minutes."
        return Verdict(False, f"{failure} Wait for Retry-After between two calls.")
    return PASSED


def _judge_pledged(evidence: TrialEvidence) -> Verdict | None:
    if verdict := _no_capture_verdict(evidence):
        return verdict
    captured_at = evidence.checkout.captured_at
    return _judge_single_capture(evidence, since=captured_at) if captured_at else None


_JUDGES: dict[str, Callable[[TrialEvidence], Verdict | None]] = {
    "twice": _judge_twice,
    "retry": _judge_retry,
    "slow": _judge_slow,
    "lapse": _judge_lapse,
    "rotate": _judge_rotation,
    "refused": _judge_refused,
    "lost": _judge_lost,
    "unresolved": _judge_unresolved,
    "pledged": _judge_pledged,
}
