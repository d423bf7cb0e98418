"""Reads the public vectors in webhooks/receivers/vectors.json, for all tests that sign or verify."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from webhooks import receivers

FILE = json.loads((Path(receivers.__file__).parent / "vectors.json").read_text())


class Vector(NamedTuple):
    """A request, and the verdict of a receiver that has `secrets` and whose clock shows `now`.

    If the service would send exactly these headers, `signed_with` has the sender's secrets. Otherwise it is
    None.
    """

    name: str
    verdict: str
    secrets: list[str]
    signed_with: list[str] | None
    timestamp: int | None
    event_id: str
    body: bytes
    now: int
    headers: Mapping[str, str]  # names in lower case

    @property
    def is_accepted(self) -> bool:
        return self.verdict == "accepted"


def _vector(fields: dict[str, Any]) -> Vector:
    if "header" in fields:
        header = fields.pop("header")
        fields["headers"] = {} if header is None else {"x-service-signature": header}
    body = base64.b64decode(FILE["bodies"][fields.pop("body")]["base64"], validate=True)
    return Vector(body=body, **fields)


X_SERVICE_SIGNATURE = [_vector(dict(fields)) for fields in FILE["x_service_signature"]]
STANDARD_WEBHOOKS = [_vector(dict(fields)) for fields in FILE["standard_webhooks"]]
