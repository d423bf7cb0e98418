"""Examples for the API's document: a real run of the API, kept in examples.json.

tests/config/openapi/test_schema.py runs the same story again and compares; it says how to record it anew.
"""

import functools
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings

from config import errors

PATH = Path(__file__).with_name("examples.json")
BASE = "{base_url}"
REQUEST_ID = "req_0193c2a17e447b0c9d1f5a6e0c41b2d8"


@functools.cache
def _recorded() -> dict[str, Any]:
    recorded: dict[str, Any] = orjson.loads(PATH.read_text().replace(BASE, settings.BASE_URL))
    return recorded


def request(name: str) -> Any:
    """Return the body that was sent to the named operation, None if there was none."""
    return _recorded()["requests"].get(name)


def answer(name: str, status: int) -> Any:
    """Return the body that the named operation answered with this status, None if none is recorded."""
    return _recorded()["answers"].get(f"{name} {status}")


def event(name: str) -> Any:
    """Return the envelope that was sent for an event."""
    return _recorded()["events"][name]


def error(code: str) -> Any:
    """Return the error body for a code: the recorded one, else the table's row."""
    body = _recorded()["errors"].get(code)
    if body is None:
        body = errors.envelope(code)
        body["error"]["request_id"] = REQUEST_ID
    return body
