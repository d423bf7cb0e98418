"""The home page before a merchant's first capture: the steps, and an example request for the next step.

A merchant's developer can run the request without changes. Rule portal.first_day.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from checkout.models import Checkout
from checkout.states import Status
from payments.models import Merchant
from portal import keys
from portal.dashboard import checklist
from portal.dashboard.checklist import Step
from portal.models import ApiClient
from portal.trials import checklist_page
from webhooks.models import Subscription

CARDS = (
    ("Pays", "4242 4242 4242 4242"),
    ("Is declined", "4000 0000 0000 0002"),
    ("The bank asks the payer", "4000 0025 0000 3155"),
)
JSON = '-H "Content-Type: application/json"'
AUTHORIZED = '-H "Authorization: Bearer $TOKEN"'
TOKEN_FILTER = """sed 's/.*"access_token": *"\\([^"]*\\)".*/\\1/'"""


@dataclass(frozen=True)
class FirstDay:
    """The data on the home page before the first capture.

    `request` is the example request for the `next` step. It is "" if the step needs no request, or if it
    needs a key and the merchant has no key yet. `cases` is the number of cases on the checklist. `total` is
    the number of steps and cases, and `done` is how many of them are completed.
    """

    steps: Sequence[Step]
    cases: int
    done: int
    total: int
    next: Step | None
    request: str
    key: ApiClient | None
    endpoint: Subscription | None
    base_url: str
    cards: Sequence[tuple[str, str]]


def first_day_of(merchant: Merchant) -> FirstDay:
    """Return the data for the merchant's home page before the first capture."""
    progress = checklist_page.checklist_counts(merchant)
    key = keys.newest_key(merchant)
    steps = progress.steps if key else [_with_key(step) for step in progress.steps]
    upcoming = next((step for step in steps if not step.is_done), None)
    return FirstDay(
        steps=steps,
        cases=len(progress.cases),
        done=progress.done,
        total=progress.total,
        next=upcoming,
        request=_request_example(merchant, upcoming.name, key) if upcoming else "",
        key=key,
        endpoint=Subscription.objects.filter(merchant=merchant, ended_at=None).first(),
        base_url=settings.BASE_URL,
        cards=CARDS if settings.SANDBOX else (),
    )


def _with_key(step: Step) -> Step:
    """Add the creation of a key to the step that gets a token. Return other steps unchanged."""
    if step.name != "token":
        return step
    return replace(
        step, text=f"First make a key. {step.text}", address=checklist.MAKE_KEY, button="Make a key"
    )


def _request_example(merchant: Merchant, name: str, key: ApiClient | None) -> str:
    """Return the shell command for a step's request, or "". Shell variables replace the values that are not known."""
    if name == "token":
        return _token_request(key.client_id) if key else ""
    if name == "checkout":
        return _checkout_request(merchant)
    return _capture_request(merchant) if name == "capture" else ""


def _token_request(client_id: str) -> str:
    body = (
        f'{{\\"grant_type\\": \\"client_credentials\\", \\"client_id\\": \\"{client_id}\\",'
        ' \\"client_secret\\": \\"$CLIENT_SECRET\\"}'
    )
    request = f'curl -s {settings.BASE_URL}/oauth/token {JSON} \\\n  -d "{body}"'
    return f"TOKEN=$({request} \\\n  | {TOKEN_FILTER})"


def _checkout_request(merchant: Merchant) -> str:
    host = next(iter(merchant.return_hosts), "shop.example")
    ticket = {
        "item_ref": "t1",
        "name": "Standing ticket",
        "quantity": 1,
        "unit_price": 2250,
        "currency": "GBP",
    }
    order: dict[str, Any] = {
        "merchant_order_id": "A-1",
        "total_amount": 2250,
        "currency": "GBP",
        "return_url": f"https://{host}/thanks",
        "cancel_url": f"https://{host}/basket",
        "items": [ticket],
    }
    parts = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in order.items()]
    # `quantity` starts a line, and is aligned with the item's first field.
    body = ",\n      ".join(parts).replace(', "quantity"', f',\n{" " * 17}"quantity"')
    return f"curl {_api_address()} \\\n  {AUTHORIZED} \\\n  {JSON} \\\n  -d '{{{body}}}'"


def _capture_request(merchant: Merchant) -> str:
    """Return a request that captures the newest held order. If no order is held, a variable replaces the id."""
    held = (
        Checkout.objects.filter(merchant=merchant, status=Status.AUTHORIZED).order_by("-created_at").first()
    )
    return f"curl -X POST {_api_address()}/{held.pk if held else '$CHECKOUT_UUID'}/capture \\\n  {AUTHORIZED}"


def _api_address() -> str:
    return f"{settings.BASE_URL}/api/merchant/v1/checkouts"
