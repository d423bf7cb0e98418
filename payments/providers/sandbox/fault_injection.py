"""Fault injection: the bank fails if the payer uses certain cards, or if a test has requested it."""

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
from payments.providers.sandbox.settling import Delay

Mode = Fault.Mode
LATE = timedelta(seconds=5)  # how far the books lag behind, if a fault makes them out of date
SILENCE = timedelta(seconds=2)  # how long the bank does not answer after the answer to a capture was lost
MODES_BEFORE_ACTION = {Mode.DOWN, Mode.ERROR, Mode.HANG, Mode.REPLAYED_500}
MODES_AFTER_ACTION = {
    Mode.DONE_THEN_HANG,
    Mode.DONE_THEN_RESET,
    Mode.DONE_THEN_ERROR,
    Mode.NONSENSE,
    Mode.DONE_REPLAYED_500,
}
REPLAYED_MODES = {Mode.REPLAYED_500, Mode.DONE_REPLAYED_500}
ERROR_MODES = {Mode.ERROR, Mode.DONE_THEN_ERROR, *REPLAYED_MODES}  # modes in which the answer is an error
PENDING_DELAYS = {
    Mode.PENDING: Delay(3),
    Mode.PENDING_FOR_EVER: Delay(None),
    Mode.PENDING_THEN_FAILED: Delay(3, "refused_later"),
}
REFUSAL_REASONS = {
    Mode.REFUND_CARD_CLOSED: settling.CARD_CLOSED,
    Mode.VOID_REFUSED_ONCE: "try_again_later",
    Mode.VOID_REFUSED: "not_permitted",
}

GARBAGE = "4242424242424242 \x00\x1b[31m\u202e" * 200


class CallFailed(Exception):
    """The caller gets no usable answer, for the reason `mode`. The call might have been carried out."""

    def __init__(self, mode: Mode) -> None:
        super().__init__(mode.label)
        self.mode = mode


def call_with_faults(verb: str, arguments: dict[str, Any]) -> Outcome:
    """Carry out a call with the faults that its card causes or a test has requested. Raises CallFailed."""
    is_set = _read_faults(verb, arguments)
    card = is_set.card
    if card is not None:
        _apply_card_effects(verb, card, arguments)
    if is_set.is_silent:
        raise CallFailed(Mode.DOWN)
    if is_set.is_broken and verb != "look_up":
        raise CallFailed(Mode.ERROR)
    fault = _next_fault(verb) if is_set.is_faulty else None
    if fault in REPLAYED_MODES:
        BrokenKey.objects.get_or_create(pk=arguments["key"])
    if fault in MODES_BEFORE_ACTION:
        raise CallFailed(fault)
    outcome = _carry_out(verb, arguments, fault)
    if fault in (Mode.NOTIFY_FIRST, Mode.NOTIFY_TWICE):
        _notify(arguments["key"], fault)
    elif fault in MODES_AFTER_ACTION:
        raise CallFailed(fault)
    if verb == "capture" and card is not None and card.loses_capture_answer:
        _lose_first_answer(_payment_of(arguments))
    return outcome


def read_books_cutoff(payment: UUID) -> datetime | None:
    """Return the time after which the books contain no lines, or None if the books are up to date.

    Raises CallFailed.
    """
    now, charge = clock.now(), Charge.objects.filter(payment=payment).first()
    if charge is not None and charge.silent_until and charge.silent_until > now:
        raise CallFailed(Mode.DOWN)
    fault = _next_fault("movements")
    if fault in MODES_BEFORE_ACTION:
        raise CallFailed(fault)
    return now - LATE if fault == Mode.STALE else None


class _ActiveFaults(NamedTuple):
    """The faults that apply to a call. `card` is the payment's card, or else the card of the token in the call."""

    is_broken: bool  # whether every call with this key gets an error; only in tests
    is_faulty: bool  # whether a test has requested a fault for this verb
    is_silent: bool  # whether the bank does not answer calls about this charge at the moment
    card: TestCard | None


def _read_faults(verb: str, arguments: dict[str, Any]) -> _ActiveFaults:
    payment, token = _payment_of(arguments), crypto.digest(arguments.get("card_token", ""))
    row = queries.row(statements.READ_FAULTS_OF_CALL, [arguments["key"], verb, payment, payment, token])
    is_broken, is_faulty, is_silent, last4 = row
    return _ActiveFaults(is_broken, is_faulty, is_silent, BY_LAST4.get(last4))


def _carry_out(verb: str, arguments: dict[str, Any], fault: Mode | None) -> Outcome:
    """Carry out the call with the given fault."""
    bank_call: Callable[..., Outcome] = getattr(bank, verb)
    key, changed = arguments["key"], dict(arguments)
    if fault == Mode.NOT_ACCEPTED:
        return Outcome(Verdict.FAILED, reason="invalid_request")
    if fault in REFUSAL_REASONS:
        return bank.refuse(**arguments, kind=verb, reason=REFUSAL_REASONS[fault])
    if fault in PENDING_DELAYS:
        changed["later"] = PENDING_DELAYS[fault]
    elif fault == Mode.ALREADY_CAPTURED:
        bank.act_in_dashboard(kind="capture", payment=arguments["payment"])
    elif fault == Mode.FORGETS_KEYS:
        journal.forget_key(key, _payment_of(arguments))
    elif fault == Mode.NOT_VOUCHED:
        changed["is_vouched"] = False
    elif fault == Mode.PARTIAL_HOLD:
        changed["charge"] = arguments["charge"] | {"amount": arguments["charge"]["amount"] // 2 or 1}
    return _spoil_outcome(bank_call(**changed), fault)


def _spoil_outcome(outcome: Outcome, fault: Mode | None) -> Outcome:
    """Return the outcome. If the fault requires it, some of its values are invalid."""
    if fault == Mode.NO_AMOUNT:
        words: dict[str, Any] = {"amount": "a lot"}
        return replace(outcome, **words)
    if fault != Mode.GARBAGE:
        return outcome
    garbage = Card(GARBAGE, GARBAGE, GARBAGE)
    return replace(outcome, reference=GARBAGE, reason=GARBAGE, card=garbage)


def set_fault(*, verb: str, mode: str, times: int) -> None:
    """Make the next `times` calls of the verb fail as described by `mode`. If `times` is 0, end the fault."""
    Fault.objects.filter(verb=verb).delete()
    if times:
        Fault.objects.create(verb=verb, mode=Mode(mode), times=times)


def _payment_of(arguments: dict[str, Any]) -> UUID:
    payment: UUID = arguments["payment"] if "payment" in arguments else arguments["charge"]["payment"]
    return payment


def _apply_card_effects(verb: str, card: TestCard, arguments: dict[str, Any]) -> None:
    if card.seconds_a_call:
        connection_release.release()
        time.sleep(card.seconds_a_call)
    if verb == "capture" and card.gets_no_capture:
        raise CallFailed(Mode.DOWN)
    if verb == "void" and card.void_failures:
        charge = Charge.objects.filter(payment=_payment_of(arguments)).first()
        if charge is not None and charge.voids_failed < card.void_failures:
            charge.voids_failed += 1
            charge.save(update_fields=["voids_failed"])
            raise CallFailed(Mode.ERROR)


def _next_fault(verb: str) -> Mode | None:
    """Return the fault for the next call of this verb and count it down, or None if a test has not set one."""
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
        raise CallFailed(Mode.DONE_THEN_RESET)
