"""With switches, the peer hangs, drops the connection, is slow, or gets a request twice."""

import time
from typing import Any

import pytest
import requests
import stripe as library
from stripe import StripeClient

from tests.payments.stripe_peer.remote import Remote

PAYMENT: Any = {"amount": 2000, "currency": "usd"}


def _count(stripe: StripeClient) -> int:
    return len(stripe.v1.payment_intents.list().data)


@pytest.mark.parametrize("mode", ["hang", "reset"])
@pytest.mark.parametrize(("when", "made"), [("before", 0), ("after", 1)])
def test_the_fault_switch_can_leave_a_call_without_a_response(
    peer: Remote, stripe: StripeClient, *, mode: str, when: str, made: int
) -> None:
    peer.switch("fault", mode=mode, when=when, method="POST", path="/v1/payment_intents", seconds=0.2)
    with pytest.raises(library.APIConnectionError):
        stripe.v1.payment_intents.create(PAYMENT)
    assert _count(stripe) == made
    stripe.v1.payment_intents.create(PAYMENT)
    assert _count(stripe) == made + 1


def test_the_fault_switch_can_slow_down_a_call(peer: Remote, stripe: StripeClient) -> None:
    peer.switch("fault", mode="slow", seconds=0.3)
    started = time.monotonic()
    stripe.v1.payment_intents.create(PAYMENT)
    assert time.monotonic() - started >= 0.3


def test_the_fault_switch_can_deliver_a_post_twice(peer: Remote, stripe: StripeClient) -> None:
    """A POST that is delivered twice is carried out twice, unless it has an idempotency key.

    The library adds a key.
    """
    peer.switch("fault", mode="repeat", method="POST", times=2)
    stripe.v1.payment_intents.create(PAYMENT)
    assert _count(stripe) == 1
    bare = {"Authorization": "Bearer sk_test_peer"}
    requests.post(f"{peer.address}/v1/payment_intents", PAYMENT, headers=bare, timeout=10)
    assert _count(stripe) == 3


def test_the_fault_switch_affects_only_its_path(peer: Remote, stripe: StripeClient) -> None:
    peer.switch("fault", mode="error", path="/v1/refunds", times=3)
    stripe.v1.payment_intents.create(PAYMENT)
    for _ in range(3):
        with pytest.raises(library.APIError):
            stripe.v1.refunds.list()
    assert stripe.v1.refunds.list().data == []


def test_unknown_switches_and_modes_are_refused(peer: Remote) -> None:
    assert requests.post(f"{peer.address}/_peer/light", "{}", timeout=10).status_code == 404
    assert requests.post(f"{peer.address}/_peer/fault", '{"mode": "explode"}', timeout=10).status_code == 400
