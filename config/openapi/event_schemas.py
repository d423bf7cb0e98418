"""A JSON Schema (draft 2020-12) for each event type, made from the webhooks' schemas in the API's document.

Rule event.schemas.
"""

import re
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.urls.converters import StringConverter
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from config.lib.once import Once
from config.openapi import events, schema
from webhooks.models import EventType

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = re.compile(r"#/components/schemas/(\w+)")


class EventTypeConverter(StringConverter):
    """Path converter for the name of an event type. No other name matches."""

    regex = "|".join(re.escape(kind.value) for kind in EventType)


def event_schema(kind: EventType) -> Schema:
    """Return the JSON Schema of an event's body. The schema refers to no other document."""
    document = schema.document()
    operation = document["webhooks"][kind.value]["post"]
    media = operation["requestBody"]["content"]["application/json"]
    schemas = document["components"]["schemas"]
    envelope = schemas[events.event_name(kind)]
    return {
        "$schema": DIALECT,
        "$id": operation["externalDocs"]["url"],
        "title": kind.value,
        "description": f"{operation['summary']}. Ignore fields that you do not know: more can be added.",
        **_self_contained(envelope),
        "examples": [media["example"]],
        "$defs": {name: _self_contained(schemas[name]) for name in _referenced_names(envelope, schemas)},
    }


def _referenced_names(part: Schema, schemas: Schema) -> list[str]:
    """Return the names of the schemas that a part refers to, directly or through other schemas, sorted."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        names = set(_REFERENCE.findall(orjson.dumps(waiting.pop()).decode())) - found
        found |= names
        waiting += [schemas[name] for name in names]
    return sorted(found)


def _self_contained(part: Any) -> Any:
    """Return a part whose references point into `$defs`, without OpenAPI's extensions.

    Validators in strict mode refuse the extensions.
    """
    if isinstance(part, dict):
        kept = {name: _self_contained(value) for name, value in part.items() if not name.startswith("x-")}
        return kept | ({"$ref": _REFERENCE.sub(r"#/$defs/\1", kept["$ref"])} if "$ref" in kept else {})
    return [_self_contained(value) for value in part] if isinstance(part, list) else part


@Once
def _schema_bytes(kind: EventType) -> bytes:
    return orjson.dumps(event_schema(kind), option=orjson.OPT_INDENT_2)


@csrf_exempt  # without this, a POST would get 403 for its missing CSRF token instead of 405
@require_safe
def serve_event_schema(_request: HttpRequest, event_type: str) -> HttpResponse:
    """Serve the schema of an event at GET /api/schema/events/<type>.json."""
    return HttpResponse(
        _schema_bytes(EventType(event_type)),
        content_type="application/schema+json",
        headers={"Cache-Control": "public, max-age=300"},
    )
