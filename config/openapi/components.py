"""Parts of the API's document that several calls share: headers, parameters, and references to objects."""

import re
from typing import Any, Literal

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentRegistry, build_mocked_view
from drf_spectacular.utils import extend_schema
from rest_framework.serializers import Serializer

Schema = dict[str, Any]
HEADERS: Schema = {
    "X-Request-Id": {
        "description": "Your own id for the call, or one that the service made. Our logs have it too.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    },
    "X-Ignored-Fields": {
        "description": "The fields of the body that the API does not know, by their paths, separated by commas. "
        "The header is sent only in the sandbox, and names at most 10 fields.",
        "schema": {"type": "string"},
    },
    "X-Suggested-Fields": {
        "description": "The fields in `X-Ignored-Fields` that are similar to a field of the call, each with that "
        "field, such as `custmer=customer`. The header is sent only in the sandbox.",
        "schema": {"type": "string"},
    },
    "Idempotent-Replay": {
        "description": "`true` if this is the stored response to the same `Idempotency-Key`.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "Retry-After": {"description": "Seconds to wait before trying again.", "schema": {"type": "integer"}},
    "WWW-Authenticate": {
        "description": "The authentication scheme to use.",
        "schema": {"type": "string", "enum": ["Bearer"]},
    },
}
PARAMETERS: Schema = {
    "RequestId": {
        "name": "X-Request-Id",
        "in": "header",
        "description": "Your own id for the call: 1 to 64 letters, digits, `.`, `_` or `-`. The service replaces any "
        "other value.",
        "schema": {"type": "string"},
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "Makes the call safe to repeat for 24 hours. The same key with the same bytes returns "
        "the stored response, and the call takes effect only once.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[\\x20-\\x7E]+$"},
    },
}


def name_of(serializer: type[Serializer[Any]]) -> str:
    """Return the name of a serializer's object in the document."""
    return re.sub("Out$", "", re.sub("In$", "Request", serializer.__name__))


def register(
    registry: ComponentRegistry,
    *serializers: type[Serializer[Any]],
    direction: Literal["request", "response"] = "response",
) -> None:
    """Add the objects of these serializers to the document. No view of the merchant API uses these serializers."""
    view = build_mocked_view("POST", "/", extend_schema(), registry)
    described: AutoSchema = view.schema
    for serializer in serializers:
        described.resolve_serializer(serializer, direction)


def reference_to(name: str) -> Schema:
    """Return a reference to an object in the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def json(media: Schema) -> Schema:
    """Return the member `content` for a JSON body."""
    return {"application/json": media}


def example_member(value: Any) -> Schema:
    """Return the member `example_member` of a body, or an empty dict if the example is None."""
    return {} if value is None else {"example": value}


def request_id_header() -> Schema:
    """Return the headers of a response whose only header is the request's id."""
    return {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}
