"""Rivals: actions on the same checkout at the same moment, and the checks of their outcomes."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from checkout import (
    authorizations,
    cancellations,
    captures,
    expiry,
    given_up_cards,
    operation_recovery,
    refunds,
    states,
    tasks,
)
from checkout.models import Change, Checkout, Refund
from checkout.states import PAID, Status
from checkout.syncing import notifications, sync
from config import errors
from config.lib import clock
from payments.models import Operation, Payment
from payments.provider import CardUse, Notification, Verdict
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Call, Charge
from tests.factories import CAUSE, CustomerFactory
from webhooks.models import Event

LONG_AGO = "2020-01-01T00:00Z"
DONE = "done"
ENDS = ("captured", "voided", "expired")
# If one of these actions takes part in a race about a hold, the hold must have ended after the race.
ENDING = ("capture", "cancel", "lapse", "watch", "fence")


def capture(checkout: Checkout) -> Checkout:
    return captures.capture(checkout.merchant, checkout.pk, cause=CAUSE)


def cancel(checkout: Checkout) -> Checkout:
    return cancellations.cancel(checkout.merchant, checkout.pk, cause=CAUSE)


def refund(checkout: Checkout) -> refunds.AcceptedRefund:
    return refunds.accept(checkout.merchant, checkout.pk, ref=f"r-{uuid4()}", cause=CAUSE)


def lapse(checkout: Checkout) -> None:
    """Make the deadline of a held or unpaid checkout pass now, and run the pump."""
    with transaction.atomic():
        locked, now = Checkout.objects.locked(checkout.pk), clock.now()
        if locked.status == Status.AUTHORIZED:
            end_hold(checkout, now)
        elif locked.status == Status.CREATED:
            Checkout.objects.filter(pk=checkout.pk).update(payable_until=now)
    tasks.expire_due()


def end_hold(checkout: Checkout, at: datetime) -> None:
    """Set the deadline of a hold to this time."""
    rows = Checkout.objects.filter(pk=checkout.pk)
    rows.update(capture_before=at, authorized_at=at - settings.HOLD)


def watch(checkout: Checkout) -> None:
    """Run the pump repeatedly until the deadline of the hold has passed."""
    over = Checkout.objects.get(pk=checkout.pk).capture_before
    while over is not None and clock.now() < over:
        expiry.expire_due(Status.AUTHORIZED, limit=1)
    expiry.expire_one_if_due(checkout.pk)


def notify(checkout: Checkout) -> None:
    """Notify the service of every call that the bank received. Then run the pump, and sync all payments."""
    payments = list(Payment.objects.filter(checkout_uuid=checkout.pk).values_list("pk", flat=True))
    for call in Call.objects.filter(charge__payment__in=payments).select_related("charge"):
        verdict = Verdict(call.verdict)
        told = Notification(str(call.pk), call.charge.payment, call.kind, verdict, call.reference)
        notifications.handle_notification(told)
    operation_recovery.finish_due_operations(checkout.pk)
    for payment_uuid in payments:
        sync.sync(payment_uuid)


def confirm(checkout: Checkout) -> None:
    """Confirm every authorization that waits for the payer. Then let the bank notify the service."""
    asking = open_operations(checkout).filter(state=Operation.State.NEEDS_ACTION)
    for key in asking.values_list("pk", flat=True):
        bank.answer_challenge(key=key, is_confirmed=True)
    notify(checkout)


def take_over(checkout: Checkout) -> None:
    """Make every lease expire, and let another process's pump take over all open operations."""
    open_operations(checkout).update(next_attempt_at=LONG_AGO)
    operation_recovery.finish_due_operations(checkout.pk)


def fence(checkout: Checkout) -> None:
    """Let the deadline pass, and let another process's pump take over all open operations."""
    lapse(checkout)
    take_over(checkout)


def pay(checkout: Checkout) -> authorizations.PaymentResult:
    """Pay with a separate card, from a separate browser tab."""
    card = CardUse(bank.tokenise(subject=checkout.pk, number="4242424242424242"))
    lead = Checkout.objects.select_related("lead").get(pk=checkout.pk).lead or CustomerFactory.create()
    return authorizations.authorize(checkout.pk, card=card, lead=lead, cause=CAUSE)


def use_another_card(checkout: Checkout) -> None:
    given_up_cards.allow_another_card(checkout.pk)


class Rival(NamedTuple):
    """An action on a checkout.

    If the service refuses the action, the error code must be one of `refusals`. If the action succeeds, the
    final status of the checkout must be one of `ends`.
    """

    run: Callable[[Checkout], object]
    refusals: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset(Status)


BUSY = "operation_in_progress"
RIVALS = {
    "capture": Rival(capture, frozenset({"not_capturable", BUSY}), frozenset(PAID)),
    "cancel": Rival(cancel, frozenset({"not_cancellable", BUSY}), frozenset({"voided"})),
    "refund": Rival(refund, frozenset({"not_refundable", BUSY}), frozenset({"refunded"})),
    "pay": Rival(pay, frozenset({"not_payable", BUSY})),
    "use another card": Rival(use_another_card),
    "confirm": Rival(confirm),
    "lapse": Rival(lapse),
    "watch": Rival(watch),
    "notify": Rival(notify),
    "take over": Rival(take_over),
    "fence": Rival(fence),
}


class Answer(NamedTuple):
    """A rival's result.

    `code` is DONE or the error code. `returned` is the value that the action returned, or the status in the
    error.
    """

    rival: str
    code: str
    returned: Any = None


def attempt(rival: str, checkout: Checkout) -> Answer:
    """Run a rival and return its result. For an unexpected error, the code is the error's `repr`."""
    try:
        return Answer(rival, DONE, RIVALS[rival].run(checkout))
    except Exception as error:
        status = error.status if isinstance(error, states.StateConflict) else ""
        return Answer(rival, errors.code_of(error) or repr(error), status)


def open_operations(checkout: Checkout) -> QuerySet[Operation]:
    return Operation.objects.filter(payment__checkout_uuid=checkout.pk, ended_at=None)


def finish(checkout: Checkout) -> None:
    """Run the pumps until no operation is open, except authorizations that wait for the payer."""
    # A rival's pump skips rows that another process has locked, so the pump runs again here.
    tasks.expire_due()
    for _ in range(10):
        if not open_operations(checkout).exclude(state=Operation.State.NEEDS_ACTION).exists():
            return
        take_over(checkout)
    raise AssertionError(f"never at rest: {list(open_operations(checkout))}")


def check(checkout: Checkout, answers: Sequence[Answer], *further_refusals: str) -> None:
    """Run the pumps, and check that the race has exactly one outcome.

    This outcome must agree with the results of all rivals, with the bank's records and with the events.
    """
    for answer in answers:
        assert answer.code in {DONE, *RIVALS[answer.rival].refusals, *further_refusals}, answers
        if answer.code != DONE:
            assert answer.rival not in states.allowed_actions(answer.returned or Status.EXPIRED), answers
    names = {answer.rival for answer in answers}
    must_end = checkout.status == Status.AUTHORIZED and not names.isdisjoint(ENDING)
    finish(checkout)
    checkout.refresh_from_db()
    assert not (must_end and checkout.status == Status.AUTHORIZED), answers
    moves = list(Change.objects.filter(checkout=checkout).values_list("to", flat=True))
    assert len([to for to in moves if to in ENDS]) <= 1, (answers, moves)
    done = [answer for answer in answers if answer.code == DONE]
    for answer in done:
        assert checkout.status in RIVALS[answer.rival].ends, (answers, checkout.status)
    captured_at = {answer.returned.captured_at for answer in done if answer.rival == "capture"}
    assert captured_at <= {checkout.captured_at}, answers
    accepted = [answer for answer in done if answer.rival == "refund"]
    assert len(accepted) <= Refund.objects.filter(checkout=checkout).count() <= 1, answers
    _check_bank(checkout)
    _check_events(checkout)


def _check_bank(checkout: Checkout) -> None:
    """Check that at most one card is charged, and that the bank has a hold only if the checkout is held."""
    payments = list(Payment.objects.filter(checkout_uuid=checkout.pk).values_list("pk", flat=True))
    charges = list(Charge.objects.filter(payment__in=payments))
    taken = [charge for charge in charges if charge.state == "captured"]
    due = checkout.amount if checkout.status == Status.CAPTURED else 0
    assert sum(charge.amount - charge.refunded_amount for charge in taken) == due, charges
    assert [charge.payment for charge in taken] == [checkout.payment_id] * (checkout.status in PAID), charges
    held = [charge.payment for charge in charges if charge.state == "held"]
    assert held == [checkout.payment_id] * (checkout.status == Status.AUTHORIZED), charges
    calls = Call.objects.filter(charge__in=charges, verdict="succeeded")
    assert calls.filter(kind="capture").count() == len(taken)
    assert calls.filter(kind="refund").count() == (checkout.status == Status.REFUNDED)


def _check_events(checkout: Checkout) -> None:
    """Check that exactly one event was emitted for each change that needs one."""
    told = sorted(Event.objects.filter(checkout_uuid=checkout.pk).values_list("type", flat=True))
    was_held = checkout.authorized_at is not None
    expected = ["checkout.authorized"] * was_held
    expected += ["checkout.voided"] * (was_held and checkout.status == Status.VOIDED)
    assert told == expected
