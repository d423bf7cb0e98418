"""PaymentIntents pass through their states as Stripe's reference describes."""

from typing import Any

import pytest
import stripe as library
from stripe import PaymentIntent, StripeClient

from tests.payments.stripe_peer.remote import Remote

BACK = "https://shop.example/back?order=7"


def _make(stripe: StripeClient, card: str = "pm_card_visa") -> PaymentIntent:
    """Create an intent with manual capture, and confirm it with the given card."""
    intent = stripe.v1.payment_intents.create({"amount": 2000, "currency": "usd", "capture_method": "manual"})
    return stripe.v1.payment_intents.confirm(intent.id, {"payment_method": card, "return_url": BACK})


def _refused(call: Any, *given: Any) -> Any:
    with pytest.raises(library.StripeError) as refused:
        call(*given)
    return refused.value


def test_made_confirmed_captured(stripe: StripeClient) -> None:
    made = stripe.v1.payment_intents.create({"amount": 2000, "currency": "usd", "capture_method": "manual"})
    assert (made.status, made.amount_capturable, made.latest_charge) == ("requires_payment_method", 0, None)
    stripe.v1.payment_intents.update(made.id, {"payment_method": "pm_card_visa", "metadata": {"order": "7"}})
    assert stripe.v1.payment_intents.retrieve(made.id).status == "requires_confirmation"
    held = stripe.v1.payment_intents.confirm(made.id, {"return_url": BACK})
    assert (held.status, held.amount_capturable, held.amount_received) == ("requires_capture", 2000, 0)
    paid = stripe.v1.payment_intents.capture(made.id)
    assert (paid.status, paid.amount_capturable, paid.amount_received) == ("succeeded", 0, 2000)
    charge = stripe.v1.charges.retrieve(str(paid.latest_charge), {"expand": ["balance_transaction"]})
    assert charge.captured
    entry: Any = charge.balance_transaction
    assert (entry.amount, entry.fee, entry.net) == (2000, 88, 1912)
    assert stripe.v1.balance_transactions.retrieve(entry.id).status == "pending"


def test_automatic_capture_is_paid_at_once_and_its_line_is_named_later(
    peer: Remote, stripe: StripeClient
) -> None:
    paid = stripe.v1.payment_intents.create(
        {
            "amount": 500,
            "currency": "eur",
            "payment_method": "pm_card_visa",
            "confirm": True,
            "return_url": BACK,
        }
    )
    assert paid.status == "succeeded"
    charge = stripe.v1.charges.retrieve(str(paid.latest_charge))
    assert (charge.captured, charge.balance_transaction) == (True, None)
    peer.switch("advance", seconds=3600)
    assert stripe.v1.charges.retrieve(charge.id).balance_transaction is not None
    assert len(stripe.v1.events.list({"type": "charge.updated"}).data) == 1


def test_a_part_is_captured_and_never_more(stripe: StripeClient) -> None:
    held = _make(stripe)
    refused = _refused(stripe.v1.payment_intents.capture, held.id, {"amount_to_capture": 2001})
    assert (refused.code, refused.param) == ("amount_too_large", "amount_to_capture")
    assert stripe.v1.payment_intents.retrieve(held.id).amount_capturable == 2000
    assert stripe.v1.payment_intents.capture(held.id, {"amount_to_capture": 700}).amount_received == 700


def test_no_step_is_taken_twice(stripe: StripeClient) -> None:
    paid, ended = _make(stripe), _make(stripe)
    intents = stripe.v1.payment_intents
    intents.capture(paid.id)
    assert intents.cancel(ended.id, {"cancellation_reason": "abandoned"}).cancellation_reason == "abandoned"
    for intent in (paid, ended):
        for act in (intents.capture, intents.cancel, intents.confirm):
            refused = _refused(act, intent.id)
            assert (refused.code, refused.http_status) == ("payment_intent_unexpected_state", 400)
            assert refused.error.payment_intent.id == intent.id
    assert intents.retrieve(paid.id).status == "succeeded"
    unpaid = intents.create({"amount": 2000, "currency": "usd"})
    assert _refused(intents.capture, unpaid.id).code == "payment_intent_unexpected_state"
    assert _refused(intents.confirm, unpaid.id).code == "payment_intent_unexpected_state"
    assert _refused(intents.update, paid.id, {"amount": 100}).code == "payment_intent_unexpected_state"


def test_a_canceled_hold_is_released(stripe: StripeClient) -> None:
    ended = stripe.v1.payment_intents.cancel(_make(stripe).id)
    charge = stripe.v1.charges.retrieve(str(ended.latest_charge))
    assert (ended.status, ended.amount_capturable) == ("canceled", 0)
    assert (charge.captured, charge.refunded, charge.amount_refunded) == (False, False, 0)
    assert not stripe.v1.events.list({"type": "charge.refunded"}).data


@pytest.mark.parametrize(
    ("card", "code", "decline_code"),
    [
        ("pm_card_chargeDeclined", "card_declined", "generic_decline"),
        ("pm_card_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
        ("pm_card_visa_chargeDeclinedLostCard", "card_declined", "lost_card"),
        ("pm_card_chargeDeclinedExpiredCard", "expired_card", None),
        ("pm_card_chargeDeclinedIncorrectCvc", "incorrect_cvc", None),
        ("pm_card_chargeDeclinedProcessingError", "processing_error", None),
    ],
)
def test_a_decline_is_402_and_another_card_can_pay(
    stripe: StripeClient, card: str, code: str, decline_code: str | None
) -> None:
    refused = _refused(_make, stripe, card)
    assert isinstance(refused, library.CardError)
    assert (refused.http_status, refused.code) == (402, code)
    assert getattr(refused.error, "decline_code", None) == decline_code
    declined: Any = stripe.v1.payment_intents.list().data[0]
    assert (declined.status, declined.payment_method) == ("requires_payment_method", None)
    assert declined.last_payment_error.code == code
    assert stripe.v1.charges.retrieve(declined.latest_charge).status == "failed"
    again = stripe.v1.payment_intents.confirm(
        declined.id, {"payment_method": "pm_card_visa", "return_url": BACK}
    )
    assert (again.status, again.last_payment_error) == ("requires_capture", None)


def test_automatic_methods_want_an_address_to_return_to(stripe: StripeClient) -> None:
    intents = stripe.v1.payment_intents
    made = intents.create({"amount": 2000, "currency": "usd", "payment_method": "pm_card_visa"})
    assert _refused(intents.confirm, made.id).param == "return_url"
    card = intents.create({"amount": 2000, "currency": "usd", "allowed_payment_method_types": ["card"]})
    assert intents.confirm(card.id, {"payment_method": "pm_card_visa"}).status == "succeeded"


def test_a_confirmation_token_is_used_once(stripe: StripeClient) -> None:
    token = stripe.v1.test_helpers.confirmation_tokens.create(
        {"payment_method": "pm_card_visa", "return_url": BACK}
    )
    intents = stripe.v1.payment_intents
    first, other = (
        intents.create({"amount": 2000, "currency": "usd", "capture_method": "manual"}) for _ in "ab"
    )
    assert intents.confirm(first.id, {"confirmation_token": token.id}).status == "requires_capture"
    assert stripe.v1.confirmation_tokens.retrieve(token.id).payment_intent == first.id
    assert _refused(intents.confirm, other.id, {"confirmation_token": token.id}).param == "confirmation_token"
    both = {"confirmation_token": token.id, "payment_method": "pm_card_visa"}
    assert _refused(intents.confirm, other.id, both).param == "confirmation_token"


def test_a_confirmation_token_lives_twelve_hours(peer: Remote, stripe: StripeClient) -> None:
    token = stripe.v1.test_helpers.confirmation_tokens.create({"payment_method": "pm_card_visa"})
    made = stripe.v1.payment_intents.create({"amount": 2000, "currency": "usd"})
    peer.switch("advance", seconds=12 * 3600)
    given: Any = {"confirmation_token": token.id, "return_url": BACK}
    assert _refused(stripe.v1.payment_intents.confirm, made.id, given).param == "confirmation_token"


def test_a_payment_method_of_a_token_and_never_of_a_number(stripe: StripeClient) -> None:
    method = stripe.v1.payment_methods.create({"type": "card", "card": {"token": "tok_visa"}})
    assert _make(stripe, method.id).payment_method == method.id
    card: Any = {"number": "4242424242424242", "exp_month": 12, "exp_year": 2040}
    assert _refused(stripe.v1.payment_methods.create, {"type": "card", "card": card}).http_status == 402


def test_a_hold_lapses_after_seven_days(peer: Remote, stripe: StripeClient) -> None:
    held = _make(stripe)
    peer.switch("advance", seconds=7 * 86400)
    lapsed = stripe.v1.payment_intents.retrieve(held.id)
    assert (lapsed.status, lapsed.cancellation_reason) == ("canceled", "expired")


def test_less_is_held_than_requested(peer: Remote, stripe: StripeClient) -> None:
    peer.switch("partial", amount=1200)
    held = _make(stripe)
    assert (held.amount, held.amount_capturable) == (2000, 1200)
    assert stripe.v1.payment_intents.capture(held.id).amount_received == 1200
