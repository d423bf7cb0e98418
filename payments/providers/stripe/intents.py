"""Finds the outcomes of a payment's authorization, capture and void in its PaymentIntent.

Stripe's documentation: "How PaymentIntents work". A PaymentIntent holds money only after it was confirmed, and its id
is committed before that. An unknown outcome can therefore always be looked up by the id.
"""

from collections.abc import Callable
from dataclasses import replace

import stripe

from payments.models import Operation
from payments.provider import Card, Outcome, Verdict
from payments.providers.stripe import amounts, reasons

Kind = Operation.Kind
ABSENT = Outcome(Verdict.NOT_FOUND, is_vouched=True)  # an intent shows every call that was carried out


def intent_outcome(kind: str, intent: stripe.PaymentIntent) -> Outcome:
    """Return the outcome of the operation of this kind. If the intent does not show one, return a vouched NOT_FOUND."""
    return _READERS[Kind(kind)](intent)


def _authorization_outcome(intent: stripe.PaymentIntent) -> Outcome:
    match intent.status:
        case "requires_capture":
            return _success_outcome(intent, intent.amount_capturable)
        case "succeeded":
            return _success_outcome(intent, intent.amount)
        case "requires_action":
            return _challenge_outcome(intent)
        case "processing":
            return Outcome(Verdict.PENDING, reference=intent.id)
        case "canceled" if _was_held(intent):
            return _success_outcome(intent, intent.amount)
    failure = intent.last_payment_error
    if failure is None:
        return _failure_outcome(intent, "canceled") if intent.status == "canceled" else ABSENT
    reason = reasons.decline_reason(*reasons.error_codes(failure))
    return Outcome(Verdict.DECLINED, reference=intent.id, reason=reason, card=card_details(intent))


def _challenge_outcome(intent: stripe.PaymentIntent) -> Outcome:
    """Return NEEDS_ACTION with the address of the page on which the payer confirms.

    If the challenge can be shown only by a script, it counts as failed.
    """
    action = intent.next_action
    page = action.redirect_to_url.url if action and action.redirect_to_url else None
    if not page:
        return _failure_outcome(intent, "challenge_failed")
    return Outcome(Verdict.NEEDS_ACTION, reference=intent.id, action_url=page)


def _capture_outcome(intent: stripe.PaymentIntent) -> Outcome:
    match intent.status:
        case "succeeded":
            return replace(_success_outcome(intent, intent.amount_received), reference=_charge_id(intent))
        case "processing":
            return Outcome(Verdict.PENDING, reference=intent.id)
        case "canceled":
            return _failure_outcome(intent, "already_voided")
    return ABSENT


def _void_outcome(intent: stripe.PaymentIntent) -> Outcome:
    match intent.status:
        case "canceled":
            return Outcome(Verdict.SUCCEEDED, reference=intent.id)
        case "succeeded":
            return _failure_outcome(intent, "already_captured")
    return ABSENT


_READERS: dict[str, Callable[[stripe.PaymentIntent], Outcome]] = {
    Kind.AUTHORIZE: _authorization_outcome,
    Kind.CAPTURE: _capture_outcome,
    Kind.VOID: _void_outcome,
}


def _success_outcome(intent: stripe.PaymentIntent, amount: int) -> Outcome:
    money = amounts.from_stripe_amount(amount, intent.currency)
    return Outcome(Verdict.SUCCEEDED, reference=intent.id, card=card_details(intent), amount=money)


def _failure_outcome(intent: stripe.PaymentIntent, reason: str) -> Outcome:
    return Outcome(Verdict.FAILED, reference=intent.id, reason=reason)


def _was_held(intent: stripe.PaymentIntent) -> bool:
    """Return whether a cancelled intent has held money, which is the case if it has a charge that was not declined."""
    return _last_charge(intent) is not None and intent.last_payment_error is None


def _last_charge(intent: stripe.PaymentIntent) -> str | stripe.Charge | None:
    """Return the last charge, or None. If the request did not ask for the whole charge, return its id.

    An event has the API version of the account or of the endpoint, which can be old. In versions before 2022-11-15, an
    intent lists all its charges.
    """
    if "latest_charge" in intent:
        return intent.latest_charge
    listed: list[stripe.Charge] = getattr(getattr(intent, "charges", None), "data", [])
    return max(listed, key=lambda charge: charge.created, default=None)


def _charge_id(intent: stripe.PaymentIntent) -> str:
    """Return the id of the intent's charge, which identifies the capture in Stripe's books."""
    charge = _last_charge(intent)
    return charge.id if isinstance(charge, stripe.Charge) else charge or ""


def card_details(intent: stripe.PaymentIntent) -> Card | None:
    """Return the details of the card, or None if there is no charge yet. With a wallet, some might be missing."""
    charge = _last_charge(intent)
    details = charge.payment_method_details if isinstance(charge, stripe.Charge) else None
    if details is None:
        return None
    card = details.card
    if card is None:
        return Card(details.type, "", "")
    return Card(card.brand or "", card.last4 or "", card.fingerprint or "")
