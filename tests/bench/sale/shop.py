"""The shop in a sale, as a process: `python -m tests.bench.sale.shop <file>`.

The shop captures orders in its webhook.

The file contains JSON: base_url, token, secret, port, certificate and key. GET /seen returns the shop's
record of each order.
"""

import asyncio
import json
import ssl
import sys
import time
from datetime import datetime
from typing import Any

import aiohttp
from aiohttp import web

from webhooks import signing

PATIENCE = 20.0  # the shop retries a capture for this many seconds
# The shop retries if an operation is open (409), too many calls wait (503), or the outcome is unknown (504).
AGAIN = {409, 503, 504}


class Shop:
    """A shop that verifies each event, captures the order, answers, and records the times."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._records: list[dict[str, Any]] = []
        self._session: aiohttp.ClientSession

    async def start(self, _: web.Application) -> None:
        trust = ssl.create_default_context(cafile=self._settings["certificate"])
        connector = aiohttp.TCPConnector(ssl=trust, limit=0)
        headers = {"Authorization": f"Bearer {self._settings['token']}"}
        self._session = aiohttp.ClientSession(
            self._settings["base_url"], connector=connector, headers=headers
        )

    async def take(self, request: web.Request) -> web.Response:
        arrived = time.time()
        body = await request.read()
        signed = request.headers.get("X-Service-Signature")
        event = signing.verify(signed, body, [self._settings["secret"]], int(arrived))
        if event["type"] == "checkout.authorized":
            await self._capture(event, arrived)
        return web.Response()

    async def show_records(self, _: web.Request) -> web.Response:
        return web.json_response(self._records)

    async def _capture(self, event: dict[str, Any], arrived: float) -> None:
        checkout_uuid, answers, began = event["data"]["checkout_uuid"], list[int](), time.monotonic()
        while time.monotonic() - began < PATIENCE and (not answers or answers[-1] in AGAIN):
            if answers:
                await asyncio.sleep(1)
            sent_at = time.monotonic()
            path = f"/api/merchant/v1/checkouts/{checkout_uuid}/capture"
            async with self._session.post(path, json={}) as answer:
                await answer.read()
            answers.append(answer.status)
            if len(answers) == 1:
                first = time.monotonic() - sent_at
        created = datetime.fromisoformat(event["created_at"]).timestamp()
        record = {"checkout": checkout_uuid, "heard_after": arrived - created, "answers": answers}
        self._records.append(record | {"captured_in": first})


def main(file: str) -> None:
    with open(file, encoding="utf-8") as text:
        given = json.load(text)
    shop, tls = Shop(given), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(given["certificate"], given["key"])
    application = web.Application()
    application.on_startup.append(shop.start)
    application.add_routes([web.post("/hooks", shop.take), web.get("/seen", shop.show_records)])
    web.run_app(
        application, host="127.0.0.1", port=int(given["port"]), ssl_context=tls, print=None, access_log=None
    )


if __name__ == "__main__":
    main(sys.argv[1])
