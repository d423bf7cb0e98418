"""Generated clients can sell, refund and receive events. They still work after additions to the API."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.journeys import polling
from tests.journeys.generated import making, openapi_generator, tomorrow
from tests.journeys.merchant import Merchant
from tests.journeys.receiver import Receiver
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
SHOPS = {
    "Python": making.python_shop,
    "TypeScript": making.typescript_shop,
    "Go": openapi_generator.go_shop,
    "PHP": openapi_generator.php_shop,
    "Ruby": openapi_generator.ruby_shop,
}


@pytest.fixture(scope="module", params=SHOPS)
def shop(
    request: pytest.FixtureRequest, service: Service, tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """Generate a client with the guide's command. Return the command that runs a shop with it."""
    make: Callable[[str, Path], list[str]] = SHOPS[request.param]
    return make(service.base_url, tmp_path_factory.mktemp(request.param))


@pytest.fixture
def envelope(subscribed: Merchant, receiver: Receiver) -> dict[str, Any]:
    """Return a delivered `checkout.authorized` event. Wait until the event feed also lists the event."""
    (arrival,) = receiver.awaited("checkout.authorized", subscribed.held())
    found: dict[str, Any] = json.loads(arrival.body)

    def is_listed() -> bool | None:
        return found["id"] in subscribed.call("GET", "merchant/v1/events").text or None

    polling.until(is_listed, within=20, what="the event in the feed")
    return found


def report_of(shop: list[str], base_url: str, merchant: Merchant, envelope: dict[str, Any]) -> dict[str, Any]:
    """Run the shop, which sells, refunds and handles the event. Return the report that it prints."""
    keys = merchant.credentials
    output = making.run(
        *shop,
        base_url,
        keys.client_id,
        keys.client_secret,
        json.dumps(envelope),
        within=Path(shop[-1]).parent,
    )
    found: dict[str, Any] = json.loads(output)
    return found


@pytest.mark.rule("api.clients")
def test_generated_clients_sell_refund_and_receive_events(
    shop: list[str], subscribed: Merchant, envelope: dict[str, Any]
) -> None:
    report = report_of(shop, subscribed.base_url, subscribed, envelope)
    assert (report["seen"][0], report["seen"][-1]) == ("captured", "refunded")
    assert (report["refused"], report["wanted"]) == ("checkout_not_found", ["*"])
    assert set(report["told"]) == {"checkout.authorized"}
    assert envelope["data"]["checkout_uuid"] in report["listed"]
    assert report["heard"] == f"{envelope['data']['checkout_uuid']} 9000"


@pytest.mark.rule("api.added_later")
def test_generated_clients_accept_values_that_were_added_later(
    shop: list[str], subscribed: Merchant, envelope: dict[str, Any]
) -> None:
    with tomorrow.running(subscribed.base_url) as base_url:
        report = report_of(shop, base_url, subscribed, tomorrow.changed(envelope))
    assert (report["seen"][0], report["seen"][-1]) == ("taken", "refunded")
    assert "captured" not in report["seen"] and "refunding" not in report["seen"]
    assert (report["refused"], report["wanted"]) == ("checkout_archived", ["*", "checkout.promised"])
    assert set(report["told"]) == set(report["listed"]) == {"checkout.promised"}
    assert report["heard"] == "ignored"


@pytest.mark.rule("api.added_later")
def test_generated_clients_accept_an_event_with_added_fields(
    shop: list[str], subscribed: Merchant, envelope: dict[str, Any]
) -> None:
    extended = tomorrow.changed(envelope) | {"type": envelope["type"]}
    report = report_of(shop, subscribed.base_url, subscribed, extended)
    assert report["heard"] == f"{envelope['data']['checkout_uuid']} 9000"
