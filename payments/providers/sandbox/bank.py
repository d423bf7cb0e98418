"""The sandbox bank's books: money that does not exist is held, taken, released, given back. Idempotent by key."""

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Sum

from config.lib import clock, crypto
from payments.provider import Card, Outcome, Record, Verdict
from payments.providers.sandbox.cards import CARDS
from payments.providers.sandbox.models import Call, CardSession, CardToken, Charge, Notice


class UnknownCard(Exception):
    """The number is not one of the test cards."""


def open_session(*, subject: UUID, return_url: str, page: dict[str, Any]) -> UUID:
    """Return the id of a new visit to the card page."""
    return CardSession.objects.create(subject=subject, return_url=return_url, page=page).pk


def tokenise(*, subject: UUID, number: str) -> str:
    """Return a single-use token for a test card, good for `subject` alone. Raises UnknownCard."""
    card = CARDS.get(number)
    if card is None:
        raise UnknownCard
    token = f"tok_{secrets.token_urlsafe(24)}"
    CardToken.objects.create(
        digest=crypto.digest(token),
        subject=subject,
        last4=card.last4,
        brand=card.brand,
        fingerprint=crypto.keyed_digest("card", number),
    )
    return token


def authorize(*, key: UUID, charge: dict[str, Any], subject: UUID, card_token: str) -> Outcome:
    """Hold a charge's amount on the card behind the token, or ask the payer to confirm it first.

    `charge` has payment, account, amount (minor units), currency and return_url.
    """
    with transaction.atomic():
        tokens = CardToken.objects.select_for_update().filter(digest=crypto.digest(card_token))
        token = tokens.filter(subject=subject).first()
        repeated = _answered(key)  # after the lock: the same call may be here twice at the same time
        if repeated:
            return repeated
        if token is None or token.used_at is not None:
            return Outcome(Verdict.DECLINED, reason="invalid_token")
        token.used_at = clock.now()
        token.save(update_fields=["used_at"])
        state, verdict = _first_state(token)
        made = Charge.objects.create(token=token, state=state, **charge)
        return _answer(key, "authorize", made, verdict, reason=token.card.decline_reason)


def _first_state(token: CardToken) -> tuple[Charge.State, Verdict]:
    if token.card.decline_reason:
        return Charge.State.DECLINED, Verdict.DECLINED
    if token.card.asks_payer:
        return Charge.State.CHALLENGED, Verdict.NEEDS_ACTION
    return Charge.State.HELD, Verdict.SUCCEEDED


def answer_challenge(*, key: UUID, is_confirmed: bool) -> Charge | None:
    """Let the payer confirm or refuse the authorization under `key`, once; return its charge, if there is one.

    What is answered already, or given up by the caller, stays as it is.
    """
    with transaction.atomic():
        call = Call.objects.filter(key=key, kind="authorize").first()
        if call is None:
            return None
        charge = Charge.objects.select_for_update().get(pk=call.charge_id)
        if charge.state != Charge.State.CHALLENGED:
            return charge
        charge.state = Charge.State.HELD if is_confirmed else Charge.State.DECLINED
        charge.save(update_fields=["state"])
        call.verdict = Verdict.SUCCEEDED if is_confirmed else Verdict.DECLINED
        call.reason = "" if is_confirmed else "challenge_failed"
        call.save(update_fields=["verdict", "reason"])
        tell(call)
        return charge


def capture(*, key: UUID, payment: UUID) -> Outcome:
    """Take what is held."""
    return _act(key, "capture", payment, _take)


def void(*, key: UUID, payment: UUID) -> Outcome:
    """Release what is held, or no longer wait for the payer's confirmation."""
    return _act(key, "void", payment, _release)


def refund(*, key: UUID, payment: UUID, amount: int) -> Outcome:
    """Accept to give back `amount`; settled or failed after SANDBOX_REFUND_SECONDS."""
    with transaction.atomic():
        charge = Charge.objects.select_for_update().filter(payment=payment).first()
        if charge is None:
            return Outcome(Verdict.FAILED, reason="unknown_payment")
        repeated = _answered(key)
        if repeated:
            return repeated
        promised = Call.objects.filter(charge=charge, verdict=Verdict.PENDING).aggregate(sum=Sum("amount"))
        given_back = charge.refunded_amount + (promised["sum"] or 0)
        if charge.state != Charge.State.CAPTURED or given_back + amount > charge.amount:
            return _answer(key, "refund", charge, Verdict.FAILED, reason="nothing_to_refund", amount=amount)
        settles_at = clock.now() + timedelta(seconds=settings.SANDBOX_REFUND_SECONDS)
        return _answer(key, "refund", charge, Verdict.PENDING, amount=amount, settles_at=settles_at)


def look_up(*, key: UUID) -> Outcome:
    """Return the answer that the call under `key` got, settling a refund that is due."""
    with transaction.atomic():
        call = Call.objects.select_for_update(of=("self",)).filter(key=key).first()
        if call is None:
            return Outcome(Verdict.NOT_FOUND)
        if _is_due(call, clock.now()):
            _settle(call)
        return _outcome(call)


def settle_due() -> None:
    """Settle the refunds whose time has come, and tell."""
    for key in Call.objects.filter(verdict=Verdict.PENDING, settles_at__lte=clock.now()).values_list(
        "pk", flat=True
    ):
        with transaction.atomic():
            call = Call.objects.select_for_update(of=("self",)).get(pk=key)
            if _is_due(call, clock.now()):
                _settle(call)


def hasten(*, payments: Sequence[UUID], seconds: int) -> None:
    """Bring the pending refunds of these payments `seconds` nearer."""
    pending = Call.objects.filter(charge__payment__in=payments, verdict=Verdict.PENDING)
    pending.update(settles_at=F("settles_at") - timedelta(seconds=seconds))


def records(*, since: datetime) -> list[Record]:
    """Return the journal from `since` on, as it stands."""
    calls = Call.objects.filter(created_at__gte=since).select_related("charge").order_by("created_at")
    return [record(call) for call in calls]


def record(call: Call) -> Record:
    """Return a line of the journal as the caller may see it."""
    return Record(
        key=call.key,
        kind=call.kind,
        verdict=Verdict(call.verdict),
        payment=call.charge.payment,
        account=call.charge.account,
        amount=call.amount,
        currency=call.charge.currency,
    )


def tell(call: Call) -> Notice:
    """Leave a notice of how the call stands, to be sent."""
    return Notice.objects.create(call=call, verdict=call.verdict, due_at=clock.now())


def _act(key: UUID, kind: str, payment: UUID, change: Callable[[Charge], tuple[Verdict, str]]) -> Outcome:
    with transaction.atomic():
        rows = Charge.objects.select_for_update(of=("self",)).select_related("token")
        charge = rows.filter(payment=payment).first()
        if charge is None:
            return Outcome(Verdict.FAILED, reason="unknown_payment")
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


def _is_due(call: Call, now: datetime) -> bool:
    return call.verdict == Verdict.PENDING and call.settles_at is not None and call.settles_at <= now


def _settle(call: Call) -> None:
    if call.charge.token.card.refund_fails:
        call.verdict, call.reason = Verdict.FAILED, "card_account_closed"
    else:
        call.verdict = Verdict.SUCCEEDED
        Charge.objects.filter(pk=call.charge_id).update(refunded_amount=F("refunded_amount") + call.amount)
    call.save(update_fields=["verdict", "reason"])
    tell(call)


def _answered(key: UUID) -> Outcome | None:
    call = Call.objects.select_related("charge__token").filter(key=key).first()
    return _outcome(call) if call else None


def _answer(
    key: UUID,
    kind: str,
    charge: Charge,
    verdict: Verdict,
    *,
    reason: str = "",
    amount: int | None = None,
    settles_at: datetime | None = None,
) -> Outcome:
    call = Call(key=key, kind=kind, charge=charge, verdict=verdict, reason=reason, settles_at=settles_at)
    call.amount = charge.amount if amount is None else amount
    call.save(force_insert=True)
    return _outcome(call)


def _outcome(call: Call) -> Outcome:
    token = call.charge.token
    card = Card(token.brand, token.last4, token.fingerprint)
    asks = call.verdict == Verdict.NEEDS_ACTION
    return Outcome(
        Verdict(call.verdict),
        reference=str(call.key),
        reason=call.reason,
        action_url=f"/bank/challenge/{call.key}" if asks else "",
        card=card,
        amount=call.amount,
    )
