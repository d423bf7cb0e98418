"""The examples in the API's document. They were recorded in a real run of the API, and are stored in examples.json.

tests/config/openapi/test_schema.py repeats the run and compares the results. That file says how to record the
examples again.
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
def _read_examples() -> dict[str, Any]:
    recorded: dict[str, Any] = orjson.loads(PATH.read_text().replace(BASE, settings.BASE_URL))
    return recorded


def request_example(name: str) -> Any:
    """Return the body that was sent to the named operation, or None if it has no body."""
    return _read_examples()["requests"].get(name)


def response_example(name: str, status: int) -> Any:
    """Return the recorded response of the named operation with this status, or None if it was not recorded."""
    return _read_examples()["answers"].get(f"{name} {status}")


def event_example(name: str) -> Any:
    """Return the recorded envelope of an event."""
    return _read_examples()["events"][name]


def error_example(code: str) -> Any:
    """Return the error body for a code: the recorded body, or else a body made from the error table."""
    body = _read_examples()["errors"].get(code)
    if body is None:
        body = errors.error_envelope(code)
        body["error"]["request_id"] = REQUEST_ID
    return body
