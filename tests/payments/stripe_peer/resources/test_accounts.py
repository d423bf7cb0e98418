"""Keys, modes and Connect: an account cannot see another account's objects."""

from typing import Any

import pytest
import stripe as library
from stripe import StripeClient

from tests.payments.stripe_peer.remote import Remote


def _make(client: StripeClient) -> str:
    return client.v1.payment_intents.create({"amount": 2000, "currency": "usd"}).id


def test_a_wrong_key_is_401(peer: Remote) -> None:
    with pytest.raises(library.AuthenticationError) as refused:
        peer.client("sk_test_somebody_else_s_key").v1.accounts.retrieve_current()
    assert refused.value.http_status == 401
    assert "somebody" not in str(refused.value)


def test_each_account_has_its_own_objects(peer: Remote) -> None:
    platform, first, second = (
        peer.client(account=name) for name in (None, "acct_connected1", "acct_connected2")
    )
    made = _make(first)
    assert first.v1.payment_intents.retrieve(made).id == made
    for other in (platform, second):
        with pytest.raises(library.InvalidRequestError) as refused:
            other.v1.payment_intents.retrieve(made)
        assert refused.value.code == "resource_missing"
        assert other.v1.payment_intents.list().data == other.v1.events.list().data == []
    assert first.v1.accounts.retrieve_current().id == "acct_connected1"
    assert first.v1.events.list().data[0].account == "acct_connected1"


def test_an_account_that_is_not_connected(peer: Remote) -> None:
    with pytest.raises(library.PermissionError) as refused:
        peer.client(account="acct_stranger").v1.accounts.retrieve_current()
    error: Any = refused.value.error
    assert (refused.value.http_status, error.code) == (403, "account_invalid")


def test_test_mode_and_live_mode_are_separate(peer: Remote) -> None:
    test, live = peer.client(), peer.client("sk_live_peer")
    made = _make(live)
    assert live.v1.payment_intents.retrieve(made).livemode
    with pytest.raises(library.InvalidRequestError):
        test.v1.payment_intents.retrieve(made)
    with pytest.raises(library.InvalidRequestError):
        live.v1.payment_intents.update(made, {"payment_method": "pm_card_visa"})
    with pytest.raises(library.PermissionError):
        live.v1.test_helpers.confirmation_tokens.create({"payment_method": "pm_card_visa"})
    token = peer.switch("confirmation_token", livemode=True, return_url="https://shop.example")["id"]
    assert live.v1.payment_intents.confirm(made, {"confirmation_token": token}).status == "succeeded"
