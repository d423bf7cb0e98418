"""A token, an order, its payment, the capture, the refund: python3 quickstart.py, with these variables set."""
# CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET

import json
import os
import sys
import time
import uuid
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

NEEDED = ("CHECKOUT_BASE_URL", "CHECKOUT_CLIENT_ID", "CHECKOUT_CLIENT_SECRET")
base_url, client_id, client_secret = (
    os.environ.get(name) or sys.exit(f"Set {name} (see Quick start in the documentation).") for name in NEEDED
)
headers = {"Content-Type": "application/json"}


def call(method: str, path: str, body: object = None, **more: str) -> Any:
    """Return the answer's JSON; what is refused ends the program, with the reason."""
    content = None if body is None else json.dumps(body).encode()
    request = Request(base_url + path, content, headers | more, method=method)
    try:
        with urlopen(request, timeout=20) as answer:
            return json.loads(answer.read() or "{}")
    except HTTPError as refused:
        sys.exit(f"{refused.code} {refused.read().decode()}")


# A token is good for an hour: keep it.
grant = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
headers["Authorization"] = f"Bearer {call('POST', '/oauth/token', grant)['access_token']}"

# An order. Its key makes one order of a call that is repeated.
order_id = f"A-{uuid.uuid4()}"
price = {"quantity": 1, "unit_price": 2250, "currency": "GBP"}
ticket = {"item_ref": "standing", "name": "Standing ticket", **price}
pages = {"return_url": "https://shop.example/thanks", "cancel_url": "https://shop.example/basket"}
order = {"merchant_order_id": order_id, "total_amount": 2250, "currency": "GBP", "items": [ticket], **pages}
created = call("POST", "/api/merchant/v1/checkouts", order, **{"Idempotency-Key": order_id})["data"]
checkout = f"/api/merchant/v1/checkouts/{created['checkout_uuid']}"
print(created["status"], created["checkout_url"])  # send your customer there

# The customer pays. In the sandbox this call does it; or open the address and pay by 4242 4242 4242 4242.
paid = call("POST", f"/api/sandbox/v1/checkouts/{created['checkout_uuid']}/pay", {})["data"]
print(paid["status"], "until", paid["capture_before"])  # the money is held, for two minutes

# Capture: after this answer the money has moved, and you fulfil the order.
print(call("POST", f"{checkout}/capture", {})["data"]["status"])

# Refund: accepted at once, settled a moment later.
call("POST", f"{checkout}/refund", {"merchant_refund_ref": f"R-{order_id}"})
while (read := call("GET", checkout)["data"])["status"] == "refunding":
    time.sleep(1)
print(read["status"], read["refunded_amount"])
