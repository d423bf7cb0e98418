"""The calls that the sandbox bank accepts: they hold, capture, release and refund play money.

Each call is idempotent by its key. Rule sandbox.bank.
"""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from uuid_utils.compat import uuid7

from config.lib import clock, crypto
from config.lib.database import queries
from payments.provider import Outcome, Verdict
from payments.providers.sandbox import disputing, journal, settling, statements
from payments.providers.sandbox.cards import BY_LAST4, CARDS, TestCard
from payments.providers.sandbox.models import Call, CardSession, CardToken, Charge
from payments.providers.sandbox.settling import STATE_AFTER_CALL, Delay

UNKNOWN_PAYMENT = Outcome(Verdict.FAILED, reason="unknown_payment")


class UnknownCard(Exception):
    """The card number is not the number of a test card."""


def open_session(*, subject: UUID, return_url: str, page: dict[str, Any]) -> UUID:
    """Store a new visit to the card page and return its id."""
    return CardSession.objects.create(subject=subject, return_url=return_url, page=page).pk


def tokenise(*, subject: UUID, number: str) -> str:
    """Return a test card's single-use token, which is valid only for `subject`. Raises UnknownCard."""
    card = CARDS.get(number)
    if card is None:
        raise UnknownCard
    token = f"tok_{secrets.token_urlsafe(24)}"
    CardToken.objects.create(
        digest=crypto.digest(token),
        subject=subject,
        last4=card.last4,
        brand=card.brand,
        fingerprint=card.fingerprint,
    )
    return token


def authorize(*, key: UUID, charge: dict[str, Any], subject: UUID, card_token: str) -> Outcome:
    """Hold a charge's amount on the card with this token, or first ask the payer to confirm.

    `charge` contains payment, account, amount (minor units), currency and return_url.
    """
    with transaction.atomic(durable=True):
        token = _use_up_token(card_token, subject)
        if token is None:  # an earlier call with the same key might have used the token
            made = Charge.objects.filter(payment=charge["payment"]).first()
            repeated = journal.remembered_answer(journal.lines_about(made), key) if made else None
            return repeated or Outcome(Verdict.DECLINED, reason="invalid_token")
        state, verdict = _first_state(BY_LAST4[token.last4])
        if state != Charge.State.CHALLENGED:  # only a challenge needs the return address
            charge = charge | {"return_url": ""}
        made = Charge.objects.create(
            token=token.pk, subject=subject, last4=token.last4, state=state, **charge
        )
        return journal.write_line(made, (), "authorize", key, verdict, reason=made.card.decline_reason)


class _Token(NamedTuple):
    """The parts of a card token that a charge needs."""

    pk: UUID
    last4: str


def _use_up_token(card_token: str, subject: UUID) -> _Token | None:
    """Mark the token as used and return it. Return None if it is already used or is not valid for the subject."""
    row = queries.row(statements.USE_UP_CARD_TOKEN, [crypto.digest(card_token), subject])
    return row and _Token(*row)


def _first_state(card: TestCard) -> tuple[Charge.State, Verdict]:
    if card.decline_reason:
        return Charge.State.DECLINED, Verdict.DECLINED
    if card.asks_payer:
        return Charge.State.CHALLENGED, Verdict.NEEDS_ACTION
    return Charge.State.HELD, Verdict.SUCCEEDED


def answer_challenge(*, key: UUID, is_confirmed: bool) -> Charge | None:
    """Confirm or refuse the authorization with this `key`, as the payer has answered.

    If the payer has already answered, or the caller has voided the authorization, it is not changed. Return its
    charge, or None if there is no such authorization.
    """
    with transaction.atomic(durable=True):
        call = Call.objects.filter(key=key, kind="authorize").first()
        if call is None:
            return None
        charge = Charge.objects.select_for_update(no_key=True).get(pk=call.charge_id)
        if charge.state != Charge.State.CHALLENGED:
            return charge
        charge.state = Charge.State.HELD if is_confirmed else Charge.State.DECLINED
        charge.save(update_fields=["state"])
        verdict = Verdict.SUCCEEDED if is_confirmed else Verdict.DECLINED
        journal.change_line(call, verdict=verdict, reason="" if is_confirmed else "challenge_failed")
        return charge


def capture(*, key: UUID, payment: UUID, later: Delay | None = None) -> Outcome:
    """Capture the held money at once or, if `later` is given, after this delay."""
    return _capture_or_void(key, "capture", payment, later)


def void(*, key: UUID, payment: UUID, later: Delay | None = None) -> Outcome:
    """Release the hold, or end an authorization that the payer has not confirmed: at once, or after `later`."""
    return _capture_or_void(key, "void", payment, later)


def _capture_or_void(key: UUID, kind: str, payment: UUID, later: Delay | None) -> Outcome:
    with transaction.atomic(durable=True):
        charge = settling.lock_charge(payment)
        if charge is None:
            return UNKNOWN_PAYMENT
        lines = journal.lines_about(charge)
        settling.settle_lines(lines)
        repeated = journal.remembered_answer(lines, key)
        if repeated:
            return repeated
        reason = _refusal_reason(kind, charge, lines)
        if reason:
            return journal.write_line(charge, lines, kind, key, Verdict.FAILED, reason=reason)
        later = later or _delay_of_card(kind, charge)
        if later:
            facts = {"settles_at": later.starts(clock.now()), "fails_with": later.reason}
            return journal.write_line(charge, lines, kind, key, Verdict.PENDING, **facts)
        settling.carry_out(kind, charge)
        return journal.write_line(charge, lines, kind, key, Verdict.SUCCEEDED)


def _refusal_reason(kind: str, charge: Charge, lines: Sequence[Call]) -> str:
    """Return the reason why a charge's money cannot be captured or released, or "" if it can be."""
    pending = [line.kind for line in lines if line.verdict == Verdict.PENDING]
    if charge.state == Charge.State.CAPTURED or (kind == "capture" and charge.state != Charge.State.HELD):
        return f"already_{charge.state}"
    return f"{pending[0]}_pending" if pending else ""


def _delay_of_card(kind: str, charge: Charge) -> Delay | None:
    seconds = charge.card.capture_settles_in
    return Delay(seconds) if kind == "capture" and seconds else None


def refund(
    *, key: UUID, payment: UUID, amount: int, refund: UUID | None = None, share: UUID | None = None
) -> Outcome:
    """Accept a refund of `amount` minor units. It settles or fails after SANDBOX_REFUND_SECONDS.

    `refund` and `share` are the caller's ids of the refund or share for which it is made.
    """
    with transaction.atomic(durable=True):
        charge = settling.lock_charge(payment)
        if charge is None:
            return UNKNOWN_PAYMENT
        lines = journal.lines_about(charge)
        repeated = journal.remembered_answer(lines, key)
        if repeated:
            return repeated
        promised = sum(line.amount for line in lines if line.verdict == Verdict.PENDING)
        disputed = disputing.disputed_amount(charge)
        refundable = charge.amount - charge.refunded_amount - promised - disputed
        facts: dict[str, Any] = {"amount": amount}
        if charge.state != Charge.State.CAPTURED or amount > refundable:
            facts["reason"] = "charge_disputed" if disputed else "nothing_to_refund"
            return journal.write_line(charge, lines, "refund", key, Verdict.FAILED, **facts)
        facts |= {"refund": refund, "share": share}
        facts["settles_at"] = clock.now() + timedelta(seconds=settings.SANDBOX_REFUND_SECONDS)
        facts["fails_with"] = settling.CARD_CLOSED if charge.card.refund_fails else ""
        return journal.write_line(charge, lines, "refund", key, Verdict.PENDING, **facts)


def look_up(*, key: UUID, payment: UUID, kind: str, is_vouched: bool = True) -> Outcome:
    """Settle the due calls of a payment, then return the outcome of one call.

    If `is_vouched` is true, the call is found even if the bank no longer remembers its key. A capture or void in the
    dashboard then also counts. If `is_vouched` is false, the call is found only while the bank remembers its key, so
    NOT_FOUND does not prove that the call never arrived.
    """
    with transaction.atomic(durable=True):
        charge = settling.lock_charge(payment)
        if charge is None:
            return Outcome(Verdict.NOT_FOUND, is_vouched=is_vouched)
        lines = journal.lines_about(charge)
        settling.settle_lines(lines)
        found = journal.newest_answer(lines, key) if is_vouched else journal.remembered_answer(lines, key)
        if is_vouched and (found is None or found.verdict == Verdict.FAILED):
            done = [line for line in lines if line.kind == kind and line.verdict == Verdict.SUCCEEDED]
            if done and kind in STATE_AFTER_CALL:
                return journal.outcome_of(done[-1])
        return found or Outcome(Verdict.NOT_FOUND, is_vouched=is_vouched)


def refuse(
    *, key: UUID, payment: UUID, kind: str, reason: str, amount: int | None = None, **_: object
) -> Outcome:
    """Refuse a call. If it is repeated with the same key, it gets the same answer."""
    with transaction.atomic(durable=True):
        charge = settling.lock_charge(payment)
        if charge is None:
            return UNKNOWN_PAYMENT
        lines = journal.lines_about(charge)
        repeated = journal.remembered_answer(lines, key)
        facts = {"reason": reason, "amount": amount or charge.amount}
        return repeated or journal.write_line(charge, lines, kind, key, Verdict.FAILED, **facts)


def act_in_dashboard(*, kind: str, payment: UUID, amount: int = 0, is_pending: bool = False) -> str:
    """Capture, void or refund as a person does in the bank's own dashboard. Notify the caller.

    Returns the reference. With `is_pending`, a refund stays pending until settling.end_refund ends it.
    """
    key = uuid7()
    if kind == "refund":
        refund(key=key, payment=payment, amount=amount)
    else:
        _capture_or_void(key, kind, payment, None)
    line = Call.objects.get(pk=key)
    line.reference = None
    if is_pending:
        line.settles_at = None
    line.save(update_fields=["reference", "settles_at"])
    journal.write_notification(line)
    return str(key)
