"""Helpers that create subscriptions through the API, with valid and invalid fields."""

from typing import Any

from tests.conftest import Api
from tests.refusals import nothing_moves, refused, without

HOOK = "http://127.0.0.1:9/hook"
PATH = "webhooks/subscription"


def subscribe(api: Api, **changes: Any) -> Any:
    return api.post(PATH, without({"url": HOOK, "event_types": ["*"]} | changes))


def refuse(api: Api, param: str, **changes: Any) -> None:
    """Check that the API refuses these fields, in a new subscription and in a change to a subscription."""
    with nothing_moves():
        refused(subscribe(api, **changes), 422, "validation_failed", param)
    assert subscribe(api).status_code == 201
    with nothing_moves():
        refused(subscribe(api, **changes), 422, "validation_failed", param)
