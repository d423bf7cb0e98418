"""In 3-D Secure by redirect, the payer goes to the bank's page and then returns to the shop."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
import stripe as library
from stripe import PaymentIntent, StripeClient

from tests.payments.stripe_peer.remote import Remote

BACK = "https://shop.example/back?order=7"


def _challenged(
    stripe: StripeClient, card: str = "pm_card_threeDSecure2Required", **extra_fields: Any
) -> PaymentIntent:
    intent = stripe.v1.payment_intents.create({"amount": 2000, "currency": "usd", "capture_method": "manual"})
    given: Any = {"payment_method": card, "return_url": BACK} | extra_fields
    return stripe.v1.payment_intents.confirm(intent.id, given)


def _answer(intent: Any, answer: str) -> dict[str, list[str]]:
    page = intent.next_action.redirect_to_url.url
    assert "Confirm" in requests.get(page, timeout=10).text
    back = requests.post(page, {"answer": answer}, allow_redirects=False, timeout=10)
    assert back.status_code == 303
    url = urlsplit(back.headers["Location"])
    assert f"{url.scheme}://{url.netloc}{url.path}" == "https://shop.example/back"
    return parse_qs(url.query)


def _returned(intent: PaymentIntent, status: str) -> dict[str, list[str]]:
    secret = str(intent.client_secret)
    said = {"payment_intent": [intent.id], "payment_intent_client_secret": [secret]}
    return said | {"order": ["7"], "redirect_status": [status]}


def test_a_confirmed_challenge_holds_the_money(stripe: StripeClient) -> None:
    intent = _challenged(stripe)
    action: Any = intent.next_action
    assert (intent.status, action.type, action.redirect_to_url.return_url) == (
        "requires_action",
        "redirect_to_url",
        BACK,
    )
    assert intent.amount_capturable == 0
    assert _answer(intent, "confirm") == _returned(intent, "succeeded")
    held = stripe.v1.payment_intents.retrieve(intent.id, {"expand": ["latest_charge"]})
    charge: Any = held.latest_charge
    assert (held.status, held.amount_capturable, held.next_action) == ("requires_capture", 2000, None)
    assert charge.payment_method_details.card.three_d_secure.result == "authenticated"


def test_a_refused_challenge_fails_the_payment(stripe: StripeClient) -> None:
    intent = _challenged(stripe)
    assert _answer(intent, "refuse") == _returned(intent, "failed")
    refused: Any = stripe.v1.payment_intents.retrieve(intent.id)
    assert (refused.status, refused.latest_charge) == ("requires_payment_method", None)
    assert refused.last_payment_error.code == "payment_intent_authentication_failure"


def _confirm_again(peer: Remote, intent: Any, number: str = "4242424242424242") -> requests.Response:
    """Confirm an intent as the payer's browser can, with the client secret in the return address."""
    asked = {
        "key": "pk_test_peer",
        "client_secret": intent.client_secret,
        "number": number,
        "return_url": BACK,
    }
    return requests.post(f"{peer.address}/_peer/confirm", json=asked, timeout=10)


def test_refused_and_confirmed_again(peer: Remote, stripe: StripeClient) -> None:
    intent = _challenged(stripe)
    _answer(intent, "refuse")
    declined = _confirm_again(peer, intent, "4000000000000002")
    assert (declined.status_code, declined.json()["error"]["code"]) == (402, "card_declined")
    assert _confirm_again(peer, intent).json()["paymentIntent"]["status"] == "requires_capture"
    held: Any = stripe.v1.payment_intents.retrieve(intent.id)
    assert (held.status, held.amount_capturable, held.last_payment_error) == ("requires_capture", 2000, None)


def test_canceled_and_confirmed_again(peer: Remote, stripe: StripeClient) -> None:
    intent = _challenged(stripe)
    _answer(intent, "refuse")
    stripe.v1.payment_intents.cancel(intent.id)
    again = _confirm_again(peer, intent)
    assert (again.status_code, again.json()["error"]["code"]) == (400, "payment_intent_unexpected_state")


def test_confirmed_and_declined(stripe: StripeClient) -> None:
    intent = _challenged(stripe, "pm_card_threeDSecureRequiredChargeDeclined")
    assert _answer(intent, "confirm") == _returned(intent, "failed")
    declined: Any = stripe.v1.payment_intents.retrieve(intent.id)
    assert (declined.status, declined.last_payment_error.code) == ("requires_payment_method", "card_declined")


def test_a_second_answer_is_ignored(stripe: StripeClient) -> None:
    intent: Any = _challenged(stripe)
    _answer(intent, "confirm")
    page = intent.next_action.redirect_to_url.url
    again = requests.post(page, {"answer": "refuse"}, allow_redirects=False, timeout=10)
    assert "redirect_status=succeeded" in again.headers["Location"]
    assert requests.get(page, allow_redirects=False, timeout=10).status_code == 303
    assert requests.get(page.partition("?")[0], timeout=10).status_code == 404


def test_canceled_while_the_bank_asks(stripe: StripeClient) -> None:
    intent: Any = _challenged(stripe)
    assert stripe.v1.payment_intents.cancel(intent.id).status == "canceled"
    page = intent.next_action.redirect_to_url.url
    back = requests.post(page, {"answer": "confirm"}, allow_redirects=False, timeout=10)
    assert "redirect_status=failed" in back.headers["Location"]
    assert stripe.v1.payment_intents.retrieve(intent.id).status == "canceled"


def test_an_off_session_payment_requires_authentication(stripe: StripeClient) -> None:
    with pytest.raises(library.CardError) as refused:
        _challenged(stripe, off_session=True)
    assert refused.value.code == "authentication_required"


def test_a_merchant_can_request_a_challenge(stripe: StripeClient) -> None:
    assert _challenged(stripe, "pm_card_threeDSecureOptional").status == "requires_capture"
    options = {"card": {"request_three_d_secure": "any"}}
    asked = _challenged(stripe, "pm_card_threeDSecureOptional", payment_method_options=options)
    assert asked.status == "requires_action"
