"""How the bank goes wrong on request: by the card that is used, or by a switch that a test has set."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from config.lib import clock, crypto
from payments.provider import Outcome
from payments.providers.sandbox import bank, notices
from payments.providers.sandbox.cards import TestCard
from payments.providers.sandbox.models import Call, CardToken, Charge, Fault

Mode = Fault.Mode
SILENCE = timedelta(seconds=2)  # after a capture whose answer is lost, nothing else is answered for so long
UNDONE = {Mode.DOWN, Mode.ERROR, Mode.HANG}


class Broken(Exception):
    """No answer comes of this call, in the way of `mode`; whether it was done, only the books know."""

    def __init__(self, mode: Mode) -> None:
        super().__init__(mode.label)
        self.mode = mode


def call(verb: str, arguments: dict[str, Any]) -> Outcome:
    """Let the bank do what it is asked, unless it shall go wrong. Raises Broken."""
    charge = _charge_of(arguments)
    _as_the_card_does(verb, arguments, charge)
    fault = _next_fault(verb)
    if fault in UNDONE:
        raise Broken(fault)
    act: Callable[..., Outcome] = getattr(bank, verb)
    outcome = act(**arguments)
    if fault in (Mode.NOTIFY_FIRST, Mode.NOTIFY_TWICE):
        _tell(arguments["key"], fault)
    elif fault is not None:
        raise Broken(fault)
    if verb == "capture" and charge is not None and charge.token.card.loses_capture_answer:
        _lose_first_answer(charge)
    return outcome


def set_fault(*, verb: str, mode: str, times: int) -> None:
    """Let the next `times` calls of the verb go wrong; nought ends it."""
    Fault.objects.filter(verb=verb).delete()
    if times:
        Fault.objects.create(verb=verb, mode=Mode(mode), times=times)


def _charge_of(arguments: dict[str, Any]) -> Charge | None:
    rows = Charge.objects.select_related("token")
    if "payment" in arguments:
        return rows.filter(payment=arguments["payment"]).first()
    found = Call.objects.filter(key=arguments["key"]).values_list("charge", flat=True).first()
    return rows.filter(pk=found).first() if found else None


def _as_the_card_does(verb: str, arguments: dict[str, Any], charge: Charge | None) -> None:
    card = charge.token.card if charge else _card_of(arguments)
    if card is not None and card.seconds_a_call:
        time.sleep(card.seconds_a_call)
    if charge is None:
        return
    if verb == "capture" and charge.token.card.gets_no_capture:
        raise Broken(Mode.DOWN)
    if charge.silent_until is not None and charge.silent_until > clock.now():
        raise Broken(Mode.DOWN)
    if verb == "void" and charge.voids_failed < charge.token.card.void_failures:
        charge.voids_failed += 1
        charge.save(update_fields=["voids_failed"])
        raise Broken(Mode.ERROR)


def _card_of(arguments: dict[str, Any]) -> TestCard | None:
    """Return the card of an authorization to come."""
    given = arguments.get("card_token")
    token = CardToken.objects.filter(digest=crypto.digest(given)).first() if given else None
    return token.card if token else None


def _next_fault(verb: str) -> Mode | None:
    """Use up one of the verb's faults, if a test has set some."""
    with transaction.atomic():
        fault = Fault.objects.select_for_update().filter(verb=verb, times__gt=0).first()
        if fault is None:
            return None
        fault.times -= 1
        fault.save(update_fields=["times"])
        return Mode(fault.mode)


def _tell(key: UUID, fault: Mode) -> None:
    told = Call.objects.get(key=key)
    first = bank.tell(told)
    if fault == Mode.NOTIFY_FIRST:
        notices.send(first)
    else:
        bank.tell(told)


def _lose_first_answer(charge: Charge) -> None:
    if charge.silent_until is None:
        charge.silent_until = clock.now() + SILENCE
        charge.save(update_fields=["silent_until"])
        raise Broken(Mode.DONE_THEN_RESET)
