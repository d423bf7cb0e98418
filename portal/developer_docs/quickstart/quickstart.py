"""Makes, pays, captures and refunds an order: python3 quickstart.py"""
# It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET.

import json
import os
import sys
import time
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

NEEDED = ("CHECKOUT_BASE_URL", "CHECKOUT_CLIENT_ID", "CHECKOUT_CLIENT_SECRET")
for name in NEEDED:
    if not os.environ.get(name):
        sys.exit(f"Set {name} (see Quick start in the documentation).")
base_url, client_id, client_secret = (os.environ[name] for name in NEEDED)
headers = {"Content-Type": "application/json"}


def call(method: str, path: str, body: object = None, **more: str) -> Any:
    """Return the response as JSON. If it is an error, print the error and exit."""
    content = None if body is None else json.dumps(body).encode()
    request = Request(base_url + path, content, headers | more, method=method)
    try:
        with urlopen(request, timeout=20) as answer:
            return json.loads(answer.read() or "{}")
    except HTTPError as refused:
        sys.exit(f"{refused.code} {refused.read().decode()}")


# A token is valid for an hour: use it for all calls.
client = {"client_id": client_id, "client_secret": client_secret}
token = call("POST", "/oauth/token", {"grant_type": "client_credentials", **client})
headers["Authorization"] = f"Bearer {token['access_token']}"

# An order. The key prevents a second order if you repeat the call.
order_id = f"A-{uuid4()}"
price = {"quantity": 1, "unit_price": 2250, "currency": "GBP"}
order = {
    "merchant_order_id": order_id,
    "total_amount": 2250,
    "currency": "GBP",
    "items": [{"item_ref": "standing", "name": "Standing ticket", **price}],
    "return_url": "https://shop.example/thanks",
    "cancel_url": "https://shop.example/basket",
}
key = {"Idempotency-Key": order_id}
created = call("POST", "/api/merchant/v1/checkouts", order, **key)["data"]
uuid = created["checkout_uuid"]
checkout = f"/api/merchant/v1/checkouts/{uuid}"
print(created["status"], created["checkout_url"])  # send your customer there

# The customer pays. In the sandbox, this call pays for them.
# Or open the address and pay with 4242 4242 4242 4242.
paid = call("POST", f"/api/sandbox/v1/checkouts/{uuid}/pay", {})["data"]
print(paid["status"], "until", paid["capture_before"])  # capture by then

# Capture: after this answer the money has moved. Now fulfil the order.
print(call("POST", f"{checkout}/capture", {})["data"]["status"])

# Refund: accepted at once, settled when the provider confirms it.
call("POST", f"{checkout}/refund", {"merchant_refund_ref": f"R-{order_id}"})
while (read := call("GET", checkout)["data"])["status"] == "refunding":
    time.sleep(1)
print(read["status"], read["refunded_amount"])
