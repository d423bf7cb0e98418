"""Fault injection: the bank fails if the payer uses certain cards, or if a test has set a switch."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction

from config.lib import clock, connection_release, crypto
from config.lib.database import queries
from payments.provider import Card, Outcome, Verdict
from payments.providers.sandbox import bank, journal, notifications, settling, statements
from payments.providers.sandbox.cards import BY_LAST4, TestCard
from payments.providers.sandbox.models import BrokenKey, Call, Charge, Fault
from payments.providers.sandbox.settling import Later

Mode = Fault.Mode
LATE = timedelta(seconds=5)  # how far stale books lag behind
SILENCE = timedelta(seconds=2)  # how long the bank answers no calls after a capture whose answer is lost
UNDONE = {Mode.DOWN, Mode.ERROR, Mode.HANG, Mode.REPLAYED_500}
DONE = {
    Mode.DONE_THEN_HANG,
    Mode.DONE_THEN_RESET,
    Mode.DONE_THEN_ERROR,
    Mode.NONSENSE,
    Mode.DONE_REPLAYED_500,
}
REPLAYED = {Mode.REPLAYED_500, Mode.DONE_REPLAYED_500}
ERRORS = {Mode.ERROR, Mode.DONE_THEN_ERROR, *REPLAYED}  # the answer is an error
PENDING = {
    Mode.PENDING: Later(3),
    Mode.PENDING_FOR_EVER: Later(None),
    Mode.PENDING_THEN_FAILED: Later(3, "refused_later"),
}
REFUSALS = {
    Mode.REFUND_CARD_CLOSED: settling.CLOSED,
    Mode.VOID_REFUSED_ONCE: "try_again_later",
    Mode.VOID_REFUSED: "not_permitted",
}

GARBAGE = "4242424242424242 \x00\x1b[31m\u202e" * 200


class Broken(Exception):
    """The call gets no usable answer, for the reason `mode`. It might have been carried out."""

    def __init__(self, mode: Mode) -> None:
        super().__init__(mode.label)
        self.mode = mode


def call_with_faults(verb: str, arguments: dict[str, Any]) -> Outcome:
    """Carry out a call with the faults that its card and the set switches cause. Raises Broken."""
    is_set = _set_for(verb, arguments)
    card = is_set.card
    if card is not None:
        _as_the_card_does(verb, card, arguments)
    if is_set.is_silent:
        raise Broken(Mode.DOWN)
    if is_set.is_broken and verb != "look_up":
        raise Broken(Mode.ERROR)
    fault = _next_fault(verb) if is_set.is_faulty else None
    if fault in REPLAYED:
        BrokenKey.objects.get_or_create(pk=arguments["key"])
    if fault in UNDONE:
        raise Broken(fault)
    outcome = _act(verb, arguments, fault)
    if fault in (Mode.NOTIFY_FIRST, Mode.NOTIFY_TWICE):
        _notify(arguments["key"], fault)
    elif fault in DONE:
        raise Broken(fault)
    if verb == "capture" and card is not None and card.loses_capture_answer:
        _lose_first_answer(_payment_of(arguments))
    return outcome


def begin_reading(payment: UUID) -> datetime | None:
    """Return the time after which lines are missing from the books, or None if the books are current.

    Raises Broken.
    """
    now, charge = clock.now(), Charge.objects.filter(payment=payment).first()
    if charge is not None and charge.silent_until and charge.silent_until > now:
        raise Broken(Mode.DOWN)
    fault = _next_fault("movements")
    if fault in UNDONE:
        raise Broken(fault)
    return now - LATE if fault == Mode.STALE else None


class _Set(NamedTuple):
    """The faults that apply to a call. `card` is the payment's card, or else the card of the call's token."""

    is_broken: bool  # whether every call under the key gets an error; only in tests
    is_faulty: bool  # whether a switch is set for the call's verb; only in tests
    is_silent: bool  # whether the bank currently answers no calls about the charge
    card: TestCard | None


def _set_for(verb: str, arguments: dict[str, Any]) -> _Set:
    payment, token = _payment_of(arguments), crypto.digest(arguments.get("card_token", ""))
    row = queries.row(statements.READ_FAULTS_OF_CALL, [arguments["key"], verb, payment, payment, token])
    is_broken, is_faulty, is_silent, last4 = row
    return _Set(is_broken, is_faulty, is_silent, BY_LAST4.get(last4))


def _act(verb: str, arguments: dict[str, Any], fault: Mode | None) -> Outcome:
    """Carry out the call with the given fault."""
    act: Callable[..., Outcome] = getattr(bank, verb)
    key, changed = arguments["key"], dict(arguments)
    if fault == Mode.NOT_ACCEPTED:
        return Outcome(Verdict.FAILED, reason="invalid_request")
    if fault in REFUSALS:
        return bank.refuse(**arguments, kind=verb, reason=REFUSALS[fault])
    if fault in PENDING:
        changed["later"] = PENDING[fault]
    elif fault == Mode.ALREADY_CAPTURED:
        bank.act_in_dashboard(kind="capture", payment=arguments["payment"])
    elif fault == Mode.FORGETS_KEYS:
        journal.stop_remembering(key, _payment_of(arguments))
    elif fault == Mode.NOT_VOUCHED:
        changed["is_vouched"] = False
    elif fault == Mode.PARTIAL_HOLD:
        changed["charge"] = arguments["charge"] | {"amount": arguments["charge"]["amount"] // 2 or 1}
    return _spoilt(act(**changed), fault)


def _spoilt(outcome: Outcome, fault: Mode | None) -> Outcome:
    """Return the outcome, with invalid values if the fault requires them."""
    if fault == Mode.NO_AMOUNT:
        words: dict[str, Any] = {"amount": "a lot"}
        return replace(outcome, **words)
    if fault != Mode.GARBAGE:
        return outcome
    garbage = Card(GARBAGE, GARBAGE, GARBAGE)
    return replace(outcome, reference=GARBAGE, reason=GARBAGE, card=garbage)


def set_fault(*, verb: str, mode: str, times: int) -> None:
    """Make the next `times` calls of the verb fail as `mode` says. If `times` is 0, end the fault."""
    Fault.objects.filter(verb=verb).delete()
    if times:
        Fault.objects.create(verb=verb, mode=Mode(mode), times=times)


def _payment_of(arguments: dict[str, Any]) -> UUID:
    payment: UUID = arguments["payment"] if "payment" in arguments else arguments["charge"]["payment"]
    return payment


def _as_the_card_does(verb: str, card: TestCard, arguments: dict[str, Any]) -> None:
    if card.seconds_a_call:
        connection_release.begin()
        time.sleep(card.seconds_a_call)
    if verb == "capture" and card.gets_no_capture:
        raise Broken(Mode.DOWN)
    if verb == "void" and card.void_failures:
        charge = Charge.objects.filter(payment=_payment_of(arguments)).first()
        if charge is not None and charge.voids_failed < card.void_failures:
            charge.voids_failed += 1
            charge.save(update_fields=["voids_failed"])
            raise Broken(Mode.ERROR)


def _next_fault(verb: str) -> Mode | None:
    """Use up and return one of the verb's faults, or return None if a test has set none."""
    with transaction.atomic(durable=True):
        fault = Fault.objects.select_for_update(no_key=True).filter(verb=verb, times__gt=0).first()
        if fault is None:
            return None
        fault.times -= 1
        fault.save(update_fields=["times"])
        return Mode(fault.mode)


def _notify(key: UUID, fault: Mode) -> None:
    line = Call.objects.get(key=key)
    first = journal.write_notification(line)
    if fault == Mode.NOTIFY_FIRST:
        notifications.send(first)
    else:
        journal.write_notification(line)


def _lose_first_answer(payment: UUID) -> None:
    charge = Charge.objects.get(payment=payment)
    if charge.silent_until is None:
        charge.silent_until = clock.now() + SILENCE
        charge.save(update_fields=["silent_until"])
        raise Broken(Mode.DONE_THEN_RESET)
