"""The sandbox bank: holds, takes, releases and gives back money that does not exist. Idempotent by key."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F

from config.lib import clock, crypto
from payments.provider import Card, Outcome, Verdict
from payments.providers.sandbox.cards import CARDS
from payments.providers.sandbox.models import Call, CardToken, Charge


class UnknownCard(Exception):
    """The number is not one of the test cards."""


def tokenise(subject: UUID, number: str) -> str:
    """Return a single-use token for a test card, good for `subject` alone. Raises UnknownCard."""
    card = CARDS.get(number)
    if card is None:
        raise UnknownCard
    token = f"tok_{secrets.token_urlsafe(24)}"
    CardToken.objects.create(
        digest=crypto.digest(token),
        subject=subject,
        last4=number[-4:],
        brand=card.brand,
        fingerprint=crypto.keyed_digest("card", number),
        decline_reason=card.decline_reason,
        refund_fails=card.refund_fails,
    )
    return token


def authorize(
    key: UUID, *, payment: UUID, subject: UUID, amount: int, currency: str, card_token: str
) -> Outcome:
    """Hold `amount` minor units on the card behind the token."""
    with transaction.atomic():
        repeated = _answered(key)
        if repeated:
            return repeated
        token = (
            CardToken.objects.select_for_update()
            .filter(digest=crypto.digest(card_token), subject=subject, used_at=None)
            .first()
        )
        if token is None:
            return Outcome(Verdict.DECLINED, reason="invalid_token")
        token.used_at = clock.now()
        token.save(update_fields=["used_at"])
        state = Charge.State.DECLINED if token.decline_reason else Charge.State.HELD
        charge = Charge.objects.create(
            payment=payment, token=token, amount=amount, currency=currency, state=state
        )
        verdict = Verdict.DECLINED if token.decline_reason else Verdict.SUCCEEDED
        return _answer(key, "authorize", charge, verdict, reason=token.decline_reason)


def capture(key: UUID, *, payment: UUID) -> Outcome:
    """Take what is held."""
    return _act(key, "capture", payment, _take)


def void(key: UUID, *, payment: UUID) -> Outcome:
    """Release what is held."""
    return _act(key, "void", payment, _release)


def refund(key: UUID, *, payment: UUID, amount: int) -> Outcome:
    """Accept to give back `amount`; settled or failed after SANDBOX_REFUND_SECONDS."""
    with transaction.atomic():
        charge = Charge.objects.select_for_update().get(payment=payment)
        repeated = _answered(key)
        if repeated:
            return repeated
        if charge.state != Charge.State.CAPTURED or charge.refunded_amount + amount > charge.amount:
            return _answer(key, "refund", charge, Verdict.FAILED, reason="nothing_to_refund")
        settles_at = clock.now() + timedelta(seconds=settings.SANDBOX_REFUND_SECONDS)
        call = Call(key=key, kind="refund", charge=charge, amount=amount, verdict=Verdict.PENDING)
        call.settles_at = settles_at
        call.save(force_insert=True)
        return Outcome(Verdict.PENDING, reference=str(key))


def look_up(key: UUID) -> Outcome:
    """Return the answer that the call under `key` got, settling a refund that is due."""
    with transaction.atomic():
        call = Call.objects.select_for_update(of=("self",)).filter(key=key).first()
        if call is None:
            return Outcome(Verdict.NOT_FOUND)
        if call.verdict == Verdict.PENDING and call.settles_at and call.settles_at <= clock.now():
            _settle(call)
        return _outcome(call)


def hasten(payments: list[UUID], seconds: int) -> None:
    """Bring the pending refunds of these payments `seconds` nearer."""
    pending = Call.objects.filter(charge__payment__in=payments, verdict=Verdict.PENDING)
    pending.update(settles_at=F("settles_at") - timedelta(seconds=seconds))


def _act(key: UUID, kind: str, payment: UUID, change: Callable[[Charge], tuple[Verdict, str]]) -> Outcome:
    with transaction.atomic():
        charge = Charge.objects.select_for_update(of=("self",)).select_related("token").get(payment=payment)
        repeated = _answered(key)
        if repeated:
            return repeated
        verdict, reason = change(charge)
        charge.save(update_fields=["state"])
        return _answer(key, kind, charge, verdict, reason=reason)


def _take(charge: Charge) -> tuple[Verdict, str]:
    if charge.state != Charge.State.HELD:
        return Verdict.FAILED, f"already_{charge.state}"
    charge.state = Charge.State.CAPTURED
    return Verdict.SUCCEEDED, ""


def _release(charge: Charge) -> tuple[Verdict, str]:
    if charge.state == Charge.State.CAPTURED:
        return Verdict.FAILED, "already_captured"
    charge.state = Charge.State.VOIDED
    return Verdict.SUCCEEDED, ""


def _settle(call: Call) -> None:
    if call.charge.token.refund_fails:
        call.verdict, call.reason = Verdict.FAILED, "card_account_closed"
    else:
        call.verdict = Verdict.SUCCEEDED
        Charge.objects.filter(pk=call.charge_id).update(refunded_amount=F("refunded_amount") + call.amount)
    call.save(update_fields=["verdict", "reason"])


def _answered(key: UUID) -> Outcome | None:
    call = Call.objects.select_related("charge__token").filter(key=key).first()
    return _outcome(call) if call else None


def _answer(key: UUID, kind: str, charge: Charge, verdict: Verdict, *, reason: str = "") -> Outcome:
    call = Call(key=key, kind=kind, charge=charge, amount=charge.amount, verdict=verdict, reason=reason)
    call.save(force_insert=True)
    return _outcome(call)


def _outcome(call: Call) -> Outcome:
    token = call.charge.token
    card = Card(token.brand, token.last4, token.fingerprint)
    return Outcome(Verdict(call.verdict), reference=str(call.key), reason=call.reason, card=card)
