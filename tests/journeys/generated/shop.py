"""A shop's backend in Python that uses only the client that openapi-python-client generates."""

import json
import sys
import time
from uuid import UUID, uuid4

from merchant_checkout_service_client import AuthenticatedClient, Client
from merchant_checkout_service_client.api.checkouts import (
    capture_checkout,
    create_checkout,
    read_checkout,
    refund_checkout,
)
from merchant_checkout_service_client.api.sandbox import sandbox_advance, sandbox_pay
from merchant_checkout_service_client.api.token import get_token
from merchant_checkout_service_client.api.webhooks import (
    list_delivery_attempts,
    list_events,
    read_subscription,
)
from merchant_checkout_service_client.models import (
    AdvanceRequest,
    CaptureRequest,
    CheckoutAuthorizedEvent,
    CheckoutRequest,
    CheckoutResponse,
    CreatedCheckoutResponse,
    CustomData,
    DeliveryLogResponse,
    ErrorEnvelope,
    EventFeedResponse,
    ItemRequest,
    Metadata,
    OtherEvent,
    PayRequest,
    RefundRequest,
    SplitCheckoutResponse,
    SubscriptionResponse,
    Token,
    TokenRequest,
    TokenRequestGrantType,
)


def connected(base_url: str, client_id: str, client_secret: str) -> AuthenticatedClient:
    asked = TokenRequest(
        grant_type=TokenRequestGrantType.CLIENT_CREDENTIALS, client_id=client_id, client_secret=client_secret
    )
    token = get_token.sync(client=Client(base_url=base_url), body=asked)
    assert isinstance(token, Token)
    return AuthenticatedClient(base_url=base_url, token=token.access_token)


def ordered() -> CheckoutRequest:
    item = ItemRequest(
        item_ref="standing", name="Standing ticket", quantity=2, unit_price=4500, currency="GBP"
    )
    item.custom_data = CustomData.from_dict({"event_id": "evt-881"})
    return CheckoutRequest(
        merchant_order_id=f"A-{uuid4().hex[:8]}",
        total_amount=9000,
        currency="GBP",
        return_url="https://shop.example/thanks",
        cancel_url="https://shop.example/basket",
        items=[item],
        metadata=Metadata.from_dict({"basket": "881"}),
    )


def bought(client: AuthenticatedClient) -> UUID:
    """Create, pay and capture an order of two tickets. Return its id."""
    created = create_checkout.sync(client=client, body=ordered(), idempotency_key=str(uuid4()))
    assert isinstance(created, CreatedCheckoutResponse)
    checkout_uuid: UUID = created.data.checkout_uuid
    paid = sandbox_pay.sync(checkout_uuid, client=client, body=PayRequest())
    assert isinstance(paid, SplitCheckoutResponse)
    assert paid.data.metadata["basket"] == "881"
    captured = capture_checkout.sync(checkout_uuid, client=client, body=CaptureRequest())
    assert isinstance(captured, CheckoutResponse)
    assert captured.data.items[0].custom_data is not None
    return checkout_uuid


def refunded(client: AuthenticatedClient, checkout_uuid: UUID) -> list[str]:
    """Refund the order, and wait until the refund has ended. Return all statuses that the order had.

    The first status is the one before the refund.
    """
    before = read_checkout.sync(checkout_uuid, client=client)
    assert isinstance(before, CheckoutResponse)
    seen: list[str] = [before.data.status]
    asked = RefundRequest(merchant_refund_ref=f"R-{uuid4().hex[:8]}", reason="Show moved")
    assert refund_checkout.sync_detailed(checkout_uuid, client=client, body=asked).status_code == 204
    for _ in range(100):
        read = read_checkout.sync(checkout_uuid, client=client)
        assert isinstance(read, CheckoutResponse)
        seen += [] if read.data.status in seen else [read.data.status]
        if read.data.status == "refunded":
            assert read.data.refunded_amount == read.data.amount
            return seen
        sandbox_advance.sync(checkout_uuid, client=client, body=AdvanceRequest(seconds=5))
        time.sleep(0.1)
    raise AssertionError(f"not refunded: {seen}")


def refusal(client: AuthenticatedClient) -> str:
    refused = read_checkout.sync(uuid4(), client=client)
    assert isinstance(refused, ErrorEnvelope)
    code: str = refused.error.code
    return code


def log(client: AuthenticatedClient) -> tuple[list[str], list[str]]:
    """Return the event types of the subscription, and the event types in the delivery log."""
    subscription, attempts = read_subscription.sync(client=client), list_delivery_attempts.sync(client=client)
    assert isinstance(subscription, SubscriptionResponse) and isinstance(attempts, DeliveryLogResponse)
    return subscription.data.event_types, [attempt.event_type for attempt in attempts.data.deliveries]


def listed(client: AuthenticatedClient) -> list[str]:
    """Return the ids of the paid orders in the event feed, followed by the feed's unknown event types."""
    feed = list_events.sync(client=client)
    assert isinstance(feed, EventFeedResponse)
    events = [entry.event for entry in feed.data.events]
    paid = [str(event.data.checkout_uuid) for event in events if isinstance(event, CheckoutAuthorizedEvent)]
    return paid + [event.type_ for event in events if isinstance(event, OtherEvent)]


def heard(body: str) -> str:
    """Handle an event as a webhook receiver does. Ignore events of an unknown type."""
    envelope = json.loads(body)
    match envelope["type"]:
        case "checkout.authorized":
            event = CheckoutAuthorizedEvent.from_dict(envelope)
            return f"{event.data.checkout_uuid} {event.data.amount}"
    return "ignored"


def main(base_url: str, client_id: str, client_secret: str, events: str) -> None:
    client = connected(base_url, client_id, client_secret)
    checkout_uuid = bought(client)
    seen, refused, (wanted, told) = refunded(client, checkout_uuid), refusal(client), log(client)
    said = {"seen": seen, "refused": refused, "wanted": wanted, "told": told, "listed": listed(client)}
    print(json.dumps(said | {"heard": heard(events)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
