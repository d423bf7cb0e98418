"""Judges whether a trial has passed, using only its evidence. Each case has a pure function."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from checkout.states import Status
from portal.trials.cases import CASES
from portal.trials.evidence import TrialEvidence
from webhooks import health
from webhooks.delivery import describe_error
from webhooks.models import Attempt, Delivery, EventType

LONGEST = timedelta(minutes=15)
LISTING_PERIOD = timedelta(minutes=10)  # how long a server may take to notice a change by listing orders
QUIET_PERIOD = timedelta(seconds=5)  # how long to wait for a second capture, which would fail the trial
ANSWER_REMEDY = (
    "Answer 2xx once you have captured, and 5xx if you could not capture. With any other answer, you lose"
    " the hold."
)

CAPTURED_EARLIER = "Your server listed its holds and captured this one before the event came"
RUN_AGAIN = "Run the case again, and let your server list its holds less often until the event comes."


class Verdict(NamedTuple):
    """The outcome of a trial; `reason` says in a sentence or two what was missing and what to do."""

    has_passed: bool
    reason: str = ""


PASSED = Verdict(True)


def judge(seen: TrialEvidence) -> Verdict | None:
    """Return the outcome of a trial, or None while it is open."""
    if seen.now - seen.trial.created_at > LONGEST:
        waited = f"15 minutes have passed without {CASES[seen.trial.case].waits_for}."
        return Verdict(False, f"{waited} Look at the lines below, and run the case again.")
    return _CASES[seen.trial.case](seen)


def _no_capture_verdict(seen: TrialEvidence) -> Verdict | None:
    """Return the verdict of a failed trial if the order was not captured and cannot be captured any more.

    Return None while a capture is possible, or if there was one.
    """
    checkout = seen.checkout
    if checkout.status == Status.VOIDED and checkout.void_reason == "merchant_cancel":
        return Verdict(
            False,
            "Your server cancelled the order. If it does not know the order, let the case pay one of your own orders.",
        )
    if checkout.status in (Status.VOIDED, Status.EXPIRED):
        return Verdict(False, f"No capture came within two minutes. {_failure_words(seen)}")
    sent = seen.delivery_of(EventType.AUTHORIZED)
    is_parked = sent is not None and sent.status == Delivery.Status.PARKED
    if checkout.status == Status.AUTHORIZED and is_parked and not seen.is_in_doubt:
        return Verdict(False, f"{_answer_words(seen.authorized[-1])} and did not capture. {ANSWER_REMEDY}")
    return None


def _failure_words(seen: TrialEvidence) -> str:
    if not seen.authorized:
        return "No checkout.authorized was sent. Tick this event under Webhooks, and run the case again."
    last = seen.authorized[-1]
    if last.is_delivered:
        return f"{_answer_words(last)} to checkout.authorized: capture there before you answer."
    if last.http_status is None:
        return f"Your server gave no answer ({describe_error(last.error_message)}). Make sure that it can be reached."
    return f"{_answer_words(last)} to checkout.authorized: look for the reason in its log."


def _answer_words(attempt: Attempt) -> str:
    if attempt.http_status is None:
        return "Your server gave no answer"
    return f"Your server answered {attempt.http_status}"


def _judge_twice(seen: TrialEvidence) -> Verdict | None:
    if gone := _no_capture_verdict(seen):
        return gone
    acted_at = seen.trial.acted_at
    again = [attempt for attempt in seen.authorized if acted_at and attempt.started_at >= acted_at]
    known = "when the event came again. Only answer 2xx to an event that you know."
    return _judge_resent(seen, again[0] if again else None, known)


def _judge_retry(seen: TrialEvidence) -> Verdict | None:
    if captured_at := _captured_without_event(seen):
        return _judge_single_capture(seen, since=captured_at)
    return _judge_retried(seen)


def _captured_without_event(seen: TrialEvidence, attempts: int = 1) -> datetime | None:
    """Return when the server captured before attempt number `attempts` + 1 of the event, or None.

    A server that lists its holds can capture without waiting for the event, which is then superseded.
    """
    sent = seen.delivery_of(EventType.AUTHORIZED)
    is_over = sent is not None and sent.status == Delivery.Status.SUPERSEDED
    return seen.checkout.captured_at if is_over and len(seen.authorized) <= attempts else None


def _judge_retried(seen: TrialEvidence) -> Verdict | None:
    if gone := _no_capture_verdict(seen):
        return gone
    second = seen.authorized[1] if len(seen.authorized) > 1 else None
    return _judge_resent(
        seen, second, "to the retry. Capture and answer 2xx, as if the event came for the first time."
    )


def _judge_resent(seen: TrialEvidence, second: Attempt | None, otherwise: str) -> Verdict | None:
    """Judge the attempt that sent the event again: it must be answered 2xx, and the order captured once.

    `otherwise` completes the reason of a failure.
    """
    if second is None or second.ended_at is None:
        return None
    if not second.is_delivered:
        return Verdict(False, f"{_answer_words(second)} {otherwise}")
    if seen.checkout.status == Status.AUTHORIZED:
        return None
    return _judge_single_capture(
        seen, since=max(second.ended_at, seen.checkout.captured_at or second.ended_at)
    )


def _judge_single_capture(seen: TrialEvidence, *, since: datetime) -> Verdict | None:
    """Judge whether the server captured only once.

    The trial fails at a second capture. It passes if no second capture has come within QUIET_PERIOD after `since`.
    """
    if len(seen.captures) > 1:
        what = "Your server captured twice: it treated a repeated event as a new event."
        return Verdict(False, f"{what} Keep the ids of the events that you have seen, and skip those.")
    return PASSED if seen.now - since >= QUIET_PERIOD and seen.captures else None


def _judge_slow(seen: TrialEvidence) -> Verdict | None:
    first = seen.authorized[0] if seen.authorized else None
    if first and first.ended_at and first.error_message != health.DROPPED_BY_SANDBOX:
        what = describe_error(first.error_message)
        return Verdict(
            False,
            f"Your server could not be reached ({what}). Make sure that it runs, and run the case again.",
        )
    return _judge_retried(seen)


def _judge_lapse(seen: TrialEvidence) -> Verdict | None:
    if seen.checkout.captured_at:
        return Verdict(False, f"{CAPTURED_EARLIER}, so no hold has lapsed. {RUN_AGAIN}")
    late, told = (seen.attempts_of(kind)[:1] for kind in (EventType.AUTHORIZED, EventType.VOIDED))
    if not late or not told or late[0].ended_at is None or told[0].ended_at is None:
        return None
    if not told[0].is_delivered:
        what = f"{_answer_words(told[0])} to checkout.voided."
        return Verdict(False, f"{what} Accept the event, mark the order as not paid, and answer 2xx.")
    if late[0].http_status is None:
        what = f"{_answer_words(late[0])} to checkout.authorized ({describe_error(late[0].error_message)})."
        return Verdict(
            False, f"{what} Make sure that it answers within 15 seconds, even if its capture is refused."
        )
    return PASSED if seen.now - max(late[0].ended_at, told[0].ended_at) >= QUIET_PERIOD else None


def _judge_rotation(seen: TrialEvidence) -> Verdict | None:
    if _captured_without_event(seen, attempts=0):
        return Verdict(False, f"{CAPTURED_EARLIER}, so it has not checked the two signatures. {RUN_AGAIN}")
    first = seen.authorized[0] if seen.authorized else None
    if first and first.ended_at and not first.is_delivered:
        what = f"{_answer_words(first)} to an event that both secrets signed."
        return Verdict(False, f"{what} Accept it if any v1 of the header matches one of your secrets.")
    if first and seen.signatures < 2:
        return Verdict(False, "Only one secret signed, because the old one was stopped. Run the case again.")
    if gone := _no_capture_verdict(seen):
        return gone
    if not first or not first.ended_at or not seen.checkout.captured_at:
        return None
    return _judge_single_capture(seen, since=max(first.ended_at, seen.checkout.captured_at))


def _judge_refused(seen: TrialEvidence) -> Verdict | None:
    if gone := _no_capture_verdict(seen):
        return gone
    failed_at = seen.came_back_at
    if failed_at is None:
        return None
    if seen.asked_since(failed_at, "refund"):
        return PASSED
    if seen.now - failed_at < LISTING_PERIOD:
        return None
    what = "The refund failed, and your server did not read the order for ten minutes."
    return Verdict(
        False, f"{what} No event reports it: list your checkouts by sort=updated_at every few minutes."
    )


def _judge_lost(seen: TrialEvidence) -> Verdict | None:
    if gone := _no_capture_verdict(seen):
        return gone
    captured_at = seen.checkout.captured_at
    if captured_at is None:
        return None
    if seen.asked_since(captured_at, "capture"):
        return PASSED
    if seen.now - captured_at < LISTING_PERIOD:
        return None
    what = "The capture's answer was lost, and your server never asked again. It does not know that the order is paid."
    return Verdict(False, f"{what} Repeat the capture, or read the order.")


def _judge_pledged(seen: TrialEvidence) -> Verdict | None:
    if gone := _no_capture_verdict(seen):
        return gone
    captured_at = seen.checkout.captured_at
    return _judge_single_capture(seen, since=captured_at) if captured_at else None


_CASES: dict[str, Callable[[TrialEvidence], Verdict | None]] = {
    "twice": _judge_twice,
    "retry": _judge_retry,
    "slow": _judge_slow,
    "lapse": _judge_lapse,
    "rotate": _judge_rotation,
    "refused": _judge_refused,
    "lost": _judge_lost,
    "pledged": _judge_pledged,
}
