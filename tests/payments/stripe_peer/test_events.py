"""The peer lists events, sends them on request, and signs them.

The official library accepts these events and refuses forged ones.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import stripe as library
from stripe import StripeClient, Webhook

from tests.payments.stripe_peer import shops
from tests.payments.stripe_peer.remote import Remote
from tests.payments.stripe_peer.shops import Shop


@pytest.fixture
def shop() -> Iterator[Shop]:
    with shops.listening() as server:
        yield server


def _listen(stripe: StripeClient, shop: Shop, **more: Any) -> str:
    given: Any = {"url": shop.address, "enabled_events": ["*"]} | more
    return str(stripe.v1.webhook_endpoints.create(given).secret)


def _hold(stripe: StripeClient) -> str:
    given: Any = {"amount": 2000, "currency": "usd", "capture_method": "manual", "confirm": True}
    given |= {"payment_method": "pm_card_visa", "return_url": "https://shop.example"}
    return stripe.v1.payment_intents.create(given, {"idempotency_key": "order-7"}).id


def test_listed_newest_first_since_one(peer: Remote, stripe: StripeClient) -> None:
    held = _hold(stripe)
    rows = stripe.v1.events.list().data
    assert sorted(row.type for row in rows) == [
        "charge.succeeded",
        "payment_intent.amount_capturable_updated",
        "payment_intent.created",
    ]
    of_intent = next(row for row in rows if row.type == "payment_intent.amount_capturable_updated")
    assert (of_intent.data.object["id"], of_intent.api_version) == (held, library.api_version)
    assert of_intent.request is not None
    assert of_intent.request.idempotency_key == "order-7"
    peer.switch("advance", seconds=2)
    stripe.v1.payment_intents.capture(held)
    newer = stripe.v1.events.list({"ending_before": rows[0].id, "created": {"gte": rows[0].created}}).data
    assert sorted(row.type for row in newer) == ["charge.captured", "payment_intent.succeeded"]
    assert len(stripe.v1.events.list({"types": ["charge.captured"]}).data) == 1
    assert stripe.v1.events.list({"created": {"gt": rows[0].created + 1000}}).data == []


def test_sent_once_on_request_and_believed(peer: Remote, stripe: StripeClient, shop: Shop) -> None:
    secret = _listen(stripe, shop)
    held = _hold(stripe)
    assert shop.messages == []
    assert [row["status"] for row in peer.switch("deliver")] == [200, 200, 200]
    assert peer.switch("deliver") == []
    events = {}
    for body, signed in shop.messages:
        event = Webhook.construct_event(body, signed, secret)
        events[event.type] = event.data.object
    assert "payment_intent.created" in events
    capturable = events["payment_intent.amount_capturable_updated"]
    assert (capturable["id"], capturable["status"]) == (held, "requires_capture")


def test_forged_and_old_messages_are_refused(peer: Remote, stripe: StripeClient, shop: Shop) -> None:
    secret = _listen(stripe, shop, enabled_events=["payment_intent.created"])
    _hold(stripe)
    name = stripe.v1.events.list({"type": "payment_intent.created"}).data[0].id
    peer.switch("deliver", events=[name], secret="whsec_guessed")
    peer.switch("deliver", events=[name], age=600)
    for body, signed in shop.messages:
        with pytest.raises(library.SignatureVerificationError):
            Webhook.construct_event(body, signed, secret)
    assert len(shop.messages) == 2


def test_sent_again_and_in_another_order(peer: Remote, stripe: StripeClient, shop: Shop) -> None:
    _listen(stripe, shop)
    _hold(stripe)
    newest_first = [row.id for row in stripe.v1.events.list().data]
    told = peer.switch("deliver", events=newest_first, times=2)
    assert [row["event"] for row in told] == [name for name in newest_first for _ in "ab"]


def test_an_event_for_a_failing_endpoint_stays_pending(
    peer: Remote, stripe: StripeClient, shop: Shop
) -> None:
    _listen(stripe, shop, enabled_events=["payment_intent.created"])
    _hold(stripe)
    shop.status = 500
    assert [row["status"] for row in peer.switch("deliver")] == [500]
    pending = stripe.v1.events.list({"delivery_success": False}).data
    assert [row.type for row in pending] == ["payment_intent.created"]


def test_a_connected_account_s_events_go_to_the_platform(
    peer: Remote, stripe: StripeClient, shop: Shop
) -> None:
    secret = _listen(stripe, shop, connect=True)
    _hold(stripe)
    assert peer.switch("deliver") == []
    _hold(peer.client(account="acct_connected1"))
    assert len(peer.switch("deliver", account="acct_connected1")) == 3
    event: Any = Webhook.construct_event(*shop.messages[0], secret)
    assert event.account == "acct_connected1"


def test_a_secret_is_shown_once_and_live_mode_requires_https(
    peer: Remote, stripe: StripeClient, shop: Shop
) -> None:
    _listen(stripe, shop)
    assert "secret" not in stripe.v1.webhook_endpoints.list().data[0].to_dict()
    with pytest.raises(library.InvalidRequestError) as refused:
        _listen(peer.client("sk_live_peer"), shop)
    assert refused.value.code == "url_invalid"
