"""A request is carried out once for each idempotency key. Its response is stored, even if it is an error."""

import threading
import time
from typing import Any

import pytest
import stripe as library
from stripe import StripeClient

from tests.payments.stripe_peer.remote import Remote

KEY: Any = {"idempotency_key": "order-7"}
PAYMENT: Any = {"amount": 2000, "currency": "usd", "capture_method": "manual"}


def _header(thing: Any, name: str) -> str | None:
    headers = {key.lower(): value for key, value in thing.last_response.headers.items()}
    return headers.get(name.lower())


def _confirmed(card: str) -> Any:
    return PAYMENT | {"payment_method": card, "confirm": True, "return_url": "https://shop.example"}


def _count(stripe: StripeClient) -> int:
    return len(stripe.v1.payment_intents.list().data)


def test_the_same_again_is_the_stored_answer(stripe: StripeClient) -> None:
    first = stripe.v1.payment_intents.create(PAYMENT, KEY)
    stripe.v1.payment_intents.update(first.id, {"description": "changed since"})
    again = stripe.v1.payment_intents.create(PAYMENT, KEY)
    assert (again.id, again.description) == (first.id, None)
    assert (_header(first, "Idempotent-Replayed"), _header(again, "Idempotent-Replayed")) == (None, "true")
    assert _count(stripe) == 1


def test_other_parameters_are_an_error(stripe: StripeClient) -> None:
    stripe.v1.payment_intents.create(PAYMENT, KEY)
    with pytest.raises(library.IdempotencyError) as refused:
        stripe.v1.payment_intents.create(PAYMENT | {"amount": 2001}, KEY)
    assert (refused.value.http_status, _count(stripe)) == (400, 1)


def test_a_decline_is_stored(stripe: StripeClient) -> None:
    for _ in "ab":
        with pytest.raises(library.CardError) as refused:
            stripe.v1.payment_intents.create(_confirmed("pm_card_chargeDeclined"), KEY)
    headers: Any = refused.value.headers
    assert (headers["Idempotent-Replayed"], _count(stripe)) == ("true", 1)


def test_a_parameter_that_is_refused_is_not_stored(stripe: StripeClient) -> None:
    with pytest.raises(library.InvalidRequestError):
        stripe.v1.payment_intents.create(PAYMENT | {"colour": "red"}, KEY)
    assert _header(stripe.v1.payment_intents.create(PAYMENT, KEY), "Idempotent-Replayed") is None


def test_an_error_of_the_server_after_it_has_begun_is_stored(peer: Remote, stripe: StripeClient) -> None:
    peer.switch("fault", mode="error", when="after")
    for _ in "ab":
        with pytest.raises(library.APIError) as failed:
            stripe.v1.payment_intents.create(_confirmed("pm_card_visa"), KEY)
        assert failed.value.http_status == 500
    held = stripe.v1.payment_intents.list().data
    assert [intent.status for intent in held] == ["requires_capture"]


def test_an_error_of_the_server_before_it_has_begun_is_not(peer: Remote, stripe: StripeClient) -> None:
    peer.switch("fault", mode="error", when="before")
    with pytest.raises(library.APIError):
        stripe.v1.payment_intents.create(PAYMENT, KEY)
    assert _count(stripe) == 0
    assert _header(stripe.v1.payment_intents.create(PAYMENT, KEY), "Idempotent-Replayed") is None


def test_an_error_of_the_server_is_stored_for_a_day_and_the_call_can_be_carried_out_later(
    peer: Remote, stripe: StripeClient
) -> None:
    peer.switch("fault", mode="error", when="later", seconds=60)
    for wait, made in ((0, 0), (61, 1), (86_000, 1)):
        peer.switch("advance", seconds=wait)
        with pytest.raises(library.APIError) as failed:
            stripe.v1.payment_intents.create(PAYMENT, KEY)
        assert (failed.value.http_status, _count(stripe)) == (500, made)
    assert peer.switch("broken_keys") == [KEY["idempotency_key"]]
    peer.switch("advance", seconds=400)
    stripe.v1.payment_intents.create(PAYMENT, KEY)
    assert (_count(stripe), peer.switch("broken_keys")) == (2, [])


def test_a_key_in_use_is_409(peer: Remote, stripe: StripeClient) -> None:
    peer.switch("fault", mode="slow", seconds=2.0)
    first = threading.Thread(target=stripe.v1.payment_intents.create, args=(PAYMENT, KEY))
    first.start()
    while peer.switch("faults"):
        time.sleep(0.01)  # wait until the peer is processing the first request
    time.sleep(0.1)
    with pytest.raises(library.APIError) as refused:
        peer.client().v1.payment_intents.create(PAYMENT, KEY)
    error: Any = refused.value.error
    assert (refused.value.http_status, error.code) == (409, "idempotency_key_in_use")
    assert error.type == "idempotency_error"
    first.join()
    assert _count(stripe) == 1


def test_a_key_lives_a_day(peer: Remote, stripe: StripeClient) -> None:
    first = stripe.v1.payment_intents.create(PAYMENT, KEY)
    peer.switch("age_keys", seconds=86_000)
    assert stripe.v1.payment_intents.create(PAYMENT, KEY).id == first.id
    peer.switch("age_keys", seconds=400)
    assert stripe.v1.payment_intents.create(PAYMENT, KEY).id != first.id


def test_a_key_is_one_account_s_own(peer: Remote) -> None:
    accounts = [None, "acct_connected1", "acct_connected2"]
    made = {peer.client(account=name).v1.payment_intents.create(PAYMENT, KEY).id for name in accounts}
    assert len(made) == 3
