"""The checklist as its page shows it: what real traffic has completed, and the cases with their trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.functional import cached_property

from checkout.models import Checkout
from checkout.states import Status
from config.lib import clock
from payments.models import Merchant
from portal.dashboard import checklist
from portal.dashboard.checklist import Step
from portal.models import Trial
from portal.templatetags.portal import time_of
from portal.trials import trial_runs
from portal.trials.cases import CASES, Case
from portal.trials.verdicts import LONGEST
from webhooks import lookup, outbox
from webhooks.models import Delivery

NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
TIMES_WORDS = ("", " twice", " three times", " four times", " five times", " again and again")


@dataclass(frozen=True)
class CaseStatus:
    """A case with its latest trial, and the latest trial that passed.

    `is_done` is true if the latest ended trial passed. If no trial has ended, it is true if real traffic has
    completed the case.
    """

    case: Case
    latest: Trial | None
    passed: Trial | None
    is_done: bool
    ticked_at: datetime | None = None  # when real traffic completed the case

    @property
    def is_running(self) -> bool:
        return self.latest is not None and self.latest.ended_at is None

    @cached_property
    def trouble(self) -> str:
        """A sentence about the server's failures in the running trial and about the next attempt, or ""."""
        checkout_uuid = self.latest.checkout_uuid if self.latest and self.is_running else None
        return _failures_sentence(checkout_uuid, self.lines) if checkout_uuid else ""

    @cached_property
    def capture_by(self) -> datetime | None:
        """The time by which the server must capture in the running trial.

        It is None if the order is not held, or if the case requires no capture.
        """
        checkout_uuid = (
            self.latest.checkout_uuid if self.latest and self.is_running and self.case.then else None
        )
        if checkout_uuid is None:
            return None
        held = Checkout.objects.filter(
            pk=checkout_uuid, status=Status.AUTHORIZED, capture_before__gt=clock.now()
        )
        return held.values_list("capture_before", flat=True).first()

    @property
    def until(self) -> datetime | None:
        """The latest time at which the latest trial can end."""
        return self.latest.created_at + LONGEST if self.latest else None

    @property
    def has_failed(self) -> bool:
        """Whether the latest trial has ended without passing."""
        return self.latest is not None and self.latest.has_passed is False

    @property
    def lines(self) -> Sequence[Mapping[str, Any]]:
        """The evidence from the latest trial, while it runs or after it failed."""
        return _dated_lines(self.latest) if self.is_running or self.has_failed else []

    @property
    def proof(self) -> Sequence[Mapping[str, Any]]:
        """The evidence from the trial that passed."""
        return _dated_lines(self.passed)


@dataclass(frozen=True)
class Progress:
    """The steps that real traffic completes, and the cases that the sandbox runs. Production has no cases."""

    steps: Sequence[Step]
    cases: Sequence[CaseStatus]
    own: Checkout | None = None  # the merchant's newest unpaid order, for which a case can pay
    is_own: bool = False  # whether the cases pay for that order

    @property
    def order(self) -> Checkout | None:
        """The merchant's own order for which the next case pays, or None if the sandbox makes an order."""
        return self.own if self.is_own else None

    @property
    def count_words(self) -> tuple[str, str]:
        """The number of steps and the number of cases in words, such as "three"."""
        return NUMBERS[len(self.steps)], NUMBERS[len(self.cases)]

    @property
    def next(self) -> Step | None:
        return next((step for step in self.steps if not step.is_done), None)

    @property
    def next_case(self) -> CaseStatus | None:
        """The case to run next. It is None until the steps are done, and while a case runs."""
        if self.next or self.is_running:
            return None
        return next((status for status in self.cases if not status.is_done), None)

    @property
    def is_running(self) -> bool:
        return any(status.is_running for status in self.cases)

    @property
    def done(self) -> int:
        return sum(step.is_done for step in self.steps) + sum(status.is_done for status in self.cases)

    @property
    def total(self) -> int:
        return len(self.steps) + len(self.cases)


def checklist_with_cases(merchant: Merchant, *, is_own: bool = False) -> Progress:
    """Return the merchant's checklist. In the sandbox, cases replace the steps that have the same names.

    With `is_own`, the cases pay for the merchant's own order.
    """
    steps = checklist.checklist_of(merchant)
    if not settings.SANDBOX:
        return Progress(steps, [])
    ticked = {step.name: step.at for step in steps if step.is_done}
    other_steps = [step for step in steps if step.name not in CASES]
    return Progress(
        other_steps, _case_statuses(merchant, ticked), trial_runs.unpaid_orders(merchant).first(), is_own
    )


def checklist_counts(merchant: Merchant) -> Progress:
    """Return the checklist of a merchant that has never captured an order. Use it only to count the completed steps.

    Its cases come without their trials.
    """
    steps = checklist.checklist_of(merchant, is_paid=False)
    if not settings.SANDBOX:
        return Progress(steps, [])
    ended = Trial.objects.filter(merchant=merchant, ended_at__isnull=False).order_by("case", "-created_at")
    results = {
        trial.case: bool(trial.has_passed) for trial in ended.distinct("case").only("case", "has_passed")
    }
    ticked = {step.name for step in steps if step.is_done}
    cases = [CaseStatus(case, None, None, results.get(name, name in ticked)) for name, case in CASES.items()]
    return Progress([step for step in steps if step.name not in CASES], cases)


def _case_statuses(merchant: Merchant, ticked: Mapping[str, datetime | None]) -> list[CaseStatus]:
    rows = Trial.objects.filter(merchant=merchant).order_by("case", "has_passed", "-created_at")
    newest = sorted(rows.distinct("case", "has_passed"), key=attrgetter("created_at"))
    latest = {trial.case: trial for trial in newest}
    passed = {trial.case: trial for trial in newest if trial.has_passed}
    results = {trial.case: bool(trial.has_passed) for trial in newest if trial.ended_at}
    return [
        CaseStatus(
            case, latest.get(name), passed.get(name), results.get(name, name in ticked), ticked.get(name)
        )
        for name, case in CASES.items()
    ]


def _failures_sentence(checkout_uuid: UUID, lines: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence about the server's failures and the next attempt, or "" if there is no failure.

    The lines of evidence are written a moment after a failure. The sentence ignores failures that the lines
    do not show yet, so that the two agree.
    """
    shown_times = {line["at"] for line in lines if line["tone"] == "stop"}
    events = list(lookup.events_about(checkout_uuid).values_list("pk", flat=True))
    deliveries = lookup.deliveries_of(events)
    delivery = deliveries.filter(status=Delivery.Status.PENDING, attempt_count__gt=0).first()
    if delivery is None or delivery.next_attempt_at is None:
        return ""
    attempts = lookup.attempts_of_deliveries([delivery.pk]).exclude(actor=outbox.SANDBOX)
    failures = attempts.filter(is_delivered=False).order_by("started_at")
    answers = [
        status
        for at, status in failures.values_list("started_at", "http_status")
        if datetime.fromisoformat(clock.iso(at) or "") in shown_times
    ]
    if not answers:
        return ""
    answer = f"answered {answers[-1]}" if answers[-1] else "gave no answer"
    times_words = TIMES_WORDS[min(len(answers), len(TIMES_WORDS)) - 1] if len(set(answers)) == 1 else ""
    return f"Your server {answer}{times_words}. Fix it: the next attempt is at {time_of(delivery.next_attempt_at)}."


def _dated_lines(trial: Trial | None) -> list[Mapping[str, Any]]:
    return [line | {"at": datetime.fromisoformat(line["at"])} for line in trial.evidence] if trial else []
