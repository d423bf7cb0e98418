"""The start and the end of trials, and the pump that takes the next step of each due trial (rules trial.*)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import QuerySet

from checkout import creation, mate_shares
from checkout.models import Checkout
from checkout.states import ShareStatus, Status
from config.lib import clock, leases, quota, wakeup
from hosted_page.sandbox import paying
from payments import operator_stops
from payments.cause import Cause
from payments.models import Merchant
from portal.models import Trial, User
from portal.trials import evidence, made_orders, sandbox_actions, verdicts
from portal.trials.cases import CASES, Case
from portal.trials.verdicts import Verdict
from webhooks import subscriptions
from webhooks.models import EventType

log = structlog.get_logger("portal.trials")
RUN_TRIALS = "portal.tasks.run_trials"
PAYER, MATE = "+447700900123", "Finn"
LIMIT = quota.Limit(30, timedelta(hours=1))  # the limit on trials, per merchant
LEASE, PAUSE = timedelta(seconds=30), timedelta(seconds=1)
MAX_STEPS = 50  # the maximum number of steps in one run of the pump
RETENTION = timedelta(days=2)  # for ended trials; the latest passed trial of each case is stored for longer
RECENT = timedelta(hours=1)
UNPAID = "The sandbox could not pay the order. Run the case again. If it fails again, write to us."


class CannotBegin(Exception):
    """Raised if the trial cannot begin. The message is a sentence for the person."""


class NoEndpoint(CannotBegin):
    """Raised if the merchant has no endpoint, or the endpoint does not get the events that the case needs."""


class BeginResult(NamedTuple):
    """A running trial, and whether this call began it."""

    trial: Trial
    is_new: bool


def begin(merchant: Merchant, case: Case, user: User, order: UUID | None = None) -> BeginResult:
    """Begin a trial for the case, or return the trial that is already running. Must be called in a transaction.

    `order` is the merchant's unpaid order for which the trial pays. Without it, the sandbox makes an order.
    Raises CannotBegin. Rules trial.one, trial.bounds.
    """
    if operator_stops.is_stopped(merchant.pk):
        raise CannotBegin("Payments are stopped, so no case can run.")
    _check_endpoint(merchant, case)
    quota.lock(f"trials:{merchant.pk}")
    now = clock.now()
    trials = Trial.objects.filter(merchant=merchant)
    running = trials.filter(case=case.name, ended_at=None).first()
    if running is not None:
        return BeginResult(running, is_new=False)
    if quota.locked_until(trials, LIMIT, now):
        raise CannotBegin(f"{LIMIT.maximum} cases were run within an hour. Wait a while.")
    if order is not None:
        _check_order(merchant, order)
    _delete_old(merchant, case, now)
    wakeup.wake_after_commit(RUN_TRIALS)
    trial = Trial.objects.create(
        merchant=merchant,
        case=case.name,
        user=user,
        checkout_uuid=order,
        created_at=now,
        next_look_at=now,
    )
    return BeginResult(trial, is_new=True)


def stop(merchant: Merchant, case: Case) -> bool:
    """End a case's running trial as not passed. Return whether a trial was running.

    The trial's order stays unchanged.
    """
    running = Trial.objects.filter(merchant=merchant, case=case.name, ended_at=None)
    ended = {"ended_at": clock.now(), "next_look_at": None, "has_passed": False}
    return bool(running.update(**ended, reason=f"The case was stopped while it waited for {case.waits_for}."))


def _check_endpoint(merchant: Merchant, case: Case) -> None:
    try:
        subscriptions.read_subscription(merchant)
    except subscriptions.SubscriptionNotFound:
        raise NoEndpoint("Save an endpoint first: the sandbox sends your server real events.") from None
    for event_type in (EventType.AUTHORIZED, case.required_event):
        if not subscriptions.has_subscribed(merchant, event_type):
            raise NoEndpoint(
                f"Your endpoint does not get {event_type}. Tick this event under Webhooks first."
            )


def _check_order(merchant: Merchant, order: UUID) -> None:
    is_free = not Trial.objects.filter(merchant=merchant, checkout_uuid=order).exists()
    if not is_free or not unpaid_orders(merchant).filter(pk=order).exists():
        raise CannotBegin("That order can no longer be paid. Make another order in your shop.")


def unpaid_orders(merchant: Merchant) -> QuerySet[Checkout]:
    """Return the merchant's own orders of the last hour that can be paid, newest first."""
    now = clock.now()
    rows = Checkout.objects.filter(
        merchant=merchant, status=Status.CREATED, created_at__gte=now - RECENT, payable_until__gt=now
    )
    return rows.exclude(merchant_order_id__startswith=made_orders.MADE_PREFIX).order_by("-created_at")


def _delete_old(merchant: Merchant, case: Case, now: datetime) -> None:
    rows = Trial.objects.filter(merchant=merchant, case=case.name)
    passed = rows.filter(has_passed=True).order_by("-created_at").values_list("pk", flat=True)[:1]
    rows.filter(created_at__lt=now - RETENTION).exclude(pk__in=list(passed)).exclude(ended_at=None).delete()


def run_due() -> None:
    """Take the next step of each trial that is due. In production, no trial runs."""
    for _ in range(MAX_STEPS if settings.SANDBOX else 0):
        trial = _DUE.take_oldest(_lease_fields)
        if trial is None:
            return
        take_step(trial)


def _lease_fields(_: Trial, now: datetime) -> Mapping[str, Any]:
    return {"next_look_at": now + LEASE}


_DUE: leases.Queue[Trial] = leases.Queue(
    lambda: Trial.objects.filter(next_look_at__isnull=False).select_related("merchant"), "next_look_at"
)


def take_step(trial: Trial) -> None:
    """Make and pay for the trial's order, take the sandbox's action if it is due, and judge the evidence.

    The trial ends as soon as it can be judged.
    """
    case = CASES[trial.case]
    try:
        verdict = _look_for_verdict(trial, _pay_order(trial, case))
    # The pump repeats the step after the lease. If the trial lasts too long, it fails.
    except Exception as error:
        log.warning("trial", case=trial.case, trial=str(trial.pk), error=type(error).__name__, exc_info=True)
        is_late = clock.now() - trial.created_at > verdicts.LONGEST
        verdict = Verdict(False, UNPAID) if is_late else None
        if not is_late:
            return
    _save_verdict(trial, verdict)


def _save_verdict(trial: Trial, verdict: Verdict | None) -> None:
    now = clock.now()
    changes: dict[str, Any] = {"next_look_at": now + PAUSE}
    if verdict is not None:
        changes = {"next_look_at": None, "ended_at": now, "has_passed": verdict.has_passed}
        changes["reason"] = verdict.reason
    changes |= {"evidence": trial.evidence, "acted_at": trial.acted_at}
    Trial.objects.filter(pk=trial.pk, ended_at=None).update(**changes)


def _pay_order(trial: Trial, case: Case) -> UUID:
    """Make the trial's order, and pay as a customer does. Skip what is already done. Return the order's id."""
    checkout_uuid = trial.checkout_uuid
    if checkout_uuid is None:
        order_id = f"{made_orders.MADE_PREFIX}{case.name}-{trial.pk.hex[-8:]}"
        order = made_orders.build_order(order_id, return_path="/portal/checklist")
        checkout_uuid = creation.create(trial.merchant, order, cause=_cause_of(trial)).pk
        trial.checkout_uuid = checkout_uuid
        Trial.objects.filter(pk=trial.pk).update(checkout_uuid=checkout_uuid)
    checkout = Checkout.objects.select_related("merchant", "lead").get(pk=checkout_uuid)
    if checkout.status == Status.CREATED:
        if case.has_pledge:
            _pledge_share(checkout, trial)
        with sandbox_actions.hold_first_attempts(case):
            paying.pay(checkout, {"phone": PAYER, "card": case.card}, cause=_cause_of(trial))
    return checkout_uuid


def _pledge_share(checkout: Checkout, trial: Trial) -> None:
    """Split the order with one mate and hold money on the mate's card, unless it is already held."""
    if not checkout.has_mates:
        half = mate_shares.equal_share(checkout, 2)
        paying.split(checkout, {"phone": PAYER, "shares": [{"amount": half, "name": MATE}]})
        checkout.refresh_from_db()
    if not checkout.payment_requests.filter(status=ShareStatus.PLEDGED).exists():
        paying.pledge_share(checkout, {}, cause=_cause_of(trial))


def _look_for_verdict(trial: Trial, checkout_uuid: UUID) -> Verdict | None:
    facts = evidence.read_evidence(trial, checkout_uuid)
    if sandbox_actions.act_if_due(facts):
        facts = evidence.read_evidence(trial, checkout_uuid)
    trial.evidence = [line._asdict() for line in evidence.evidence_in_words(facts)]
    return verdicts.judge(facts)


def _cause_of(trial: Trial) -> Cause:
    return Cause(f"user:{trial.user_id}", f"trial-{trial.pk}")
