"""Calls to the sandbox helpers."""

from typing import Any

from checkout.models import Checkout
from tests.conftest import Api


def post(api: Api, checkout: Checkout, verb: str, body: Any) -> Any:
    path = f"/api/sandbox/v1/checkouts/{checkout.pk}/{verb}"
    return api.client.post(path, body, content_type="application/json", headers=api.headers({}))
