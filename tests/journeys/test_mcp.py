"""Tests an integration as a model does: the protocol's official client calls mcp.py from a real service."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from mcp import Client, StdioServerParameters

from tests.journeys.merchant import Merchant
from tests.journeys.receiver import Receiver
from tests.journeys.service import Service
from tests.webhooks.foreign import programs

pytestmark = [pytest.mark.journey, pytest.mark.rule("mcp.file")]
LISTED_WITHIN, PAUSE = 10.0, 0.2  # seconds


async def call(client: Client, name: str, **arguments: Any) -> Any:
    """Return the answer of a tool. Fail if the tool reports an error."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def events_of(client: Client, checkout_uuid: str, count: int) -> list[Any]:
    """Wait until the checkout has `count` events, and return them."""
    for _ in range(int(LISTED_WITHIN / PAUSE)):
        listed = (await call(client, "list_events", checkout_uuid=checkout_uuid))["events"]
        if len(listed) >= count:
            return list(listed)
        await asyncio.sleep(PAUSE)
    raise AssertionError("The events are not listed in time.")


async def story(client: Client) -> None:
    created = await call(client, "create_checkout")
    uuid = created["checkout_uuid"]
    assert created["status"] == "created"
    declined = await client.call_tool("pay_checkout", {"checkout_uuid": uuid, "card": "4000000000000002"})
    assert declined.is_error and "card_declined" in str(declined.content)
    assert (await call(client, "pay_checkout", checkout_uuid=uuid))["status"] == "authorized"
    assert (await call(client, "advance_clock", checkout_uuid=uuid, seconds=121))["status"] == "voided"
    assert (await call(client, "read_checkout", checkout_uuid=uuid))["void_reason"] == "auth_expired"
    events = await events_of(client, uuid, 2)
    assert [entry["event"]["type"] for entry in events] == ["checkout.authorized", "checkout.voided"]
    attempts = await call(client, "list_deliveries", event_id=events[0]["event"]["id"])
    assert [attempt["status"] for attempt in attempts["deliveries"]] == ["delivered"]


def test_a_model_creates_pays_and_observes_an_order(
    service: Service, subscribed: Merchant, receiver: Receiver, tmp_path: Path
) -> None:
    file = tmp_path / "mcp_server.py"
    file.write_bytes(requests.get(f"{service.base_url}/api/docs/mcp.py", timeout=10).content)
    known = subscribed.credentials
    server = StdioServerParameters(
        command=sys.executable,
        args=[str(file)],
        env=programs.variables(service.base_url, known.client_id, known.client_secret),
    )

    async def connect() -> None:
        async with Client(server, read_timeout_seconds=20) as client:
            await story(client)

    asyncio.run(connect())
