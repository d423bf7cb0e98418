"""Webhook events in the API's document (rules event.types, event.envelope)."""

import re
from typing import Any

from django.conf import settings
from drf_spectacular.plumbing import ComponentRegistry
from rest_framework.serializers import Serializer

from checkout.events import AuthorizedDataOut, VoidedDataOut
from config.lib.api.responses import OpenChoice, Time
from config.openapi import components, examples
from config.openapi.components import reference_to
from hosted_page.opt_in.event import OptedInDataOut
from webhooks.models import EventType
from webhooks.outbox import API_VERSION

Schema = dict[str, Any]
# The serializer of each event's `data` (rules event.*). None means that receivers can ignore `data`.
DATA: dict[EventType, type[Serializer[Any]] | None] = {
    EventType.AUTHORIZED: AuthorizedDataOut,
    EventType.VOIDED: VoidedDataOut,
    EventType.OPTED_IN: OptedInDataOut,
    EventType.TEST: None,
}
SENTENCES = {
    EventType.AUTHORIZED: (
        "The customer has paid; the funds are held",
        "Verify the signature, and ignore an event whose `id` you have already processed. Capture, or cancel "
        "an order that you cannot fulfil. Then answer 2xx. All of this must end within 15 seconds. The hold "
        "ends two minutes after `created_at`.",
    ),
    EventType.VOIDED: (
        "An authorization was released",
        "You cancelled the checkout, or did not capture it within two minutes. No money was taken.",
    ),
    EventType.OPTED_IN: (
        "A customer ticked your marketing opt-in box",
        "The service sends this event for every tick, including repeats on the same order. The newest tick "
        "is current. Only this event has personal data. It does not show whether the order was paid.",
    ),
    EventType.TEST: (
        "A test event from the portal",
        "The service sends this event even if you do not subscribe to its type. It is not about a checkout. "
        "Verify the signature and answer 2xx.",
    ),
}
SIGNATURE_HEADERS = {
    "X-Service-Signature": "`t=<unix seconds>,v1=<hex>`, and another `,v1=<hex>` for each previous secret "
    "that still signs.",
    "X-Service-Timestamp": "The same Unix seconds.",
    "X-Service-Event-Id": "The same as `id` in the body.",
    "X-Service-Event-Type": "The same as `type` in the body.",
    "X-Service-Delivery-Attempt": "1 for the first attempt.",
    "webhook-id": "The same as `id`, for the libraries of Standard Webhooks.",
    "webhook-timestamp": "The Unix seconds, for the same libraries.",
    "webhook-signature": "`v1,<base64>`, for the same libraries.",
}


_DELIVERY_RESPONSES: Schema = {
    "2XX": {"description": "Delivered."},
    "4XX": {
        "description": "The attempt failed. After any other status than 408 and 429, the service no longer sends a "
        "`checkout.authorized`."
    },
    "default": {
        "description": "The attempt failed. The delivery log lists it, and the service can send the event again."
    },
}
_NOTHING: Schema = {"type": "object", "description": "Not about a checkout."}
SCHEMA_PATH = "/api/schema/events/{event_type}.json"
UUIDS = ("X-Service-Event-Id", "webhook-id")

# The schema that existing clients use for event types that are added later.
OTHER_DATA: Schema = {
    "type": "object",
    "additionalProperties": True,
    "description": "The data of an event whose type was added later.",
}


def webhooks() -> Schema:
    """Return the path item of each event type, with its envelope (rule event.types)."""
    return {kind.value: {"post": _path_item_of(kind)} for kind in DATA}


def callbacks() -> Schema:
    """Return the callback of a subscription: the service posts any event to its `url`."""
    delivery = {
        "operationId": "receive_event",
        "summary": "An event of the subscription",
        "description": "The service posts each event to the `url` that you registered.",
        "tags": ["Events"],
        "security": [],
        "requestBody": {"required": True, "content": components.json({"schema": reference_to("Event")})},
        "responses": _DELIVERY_RESPONSES,
    }
    return {"event": {"{$request.body#/url}": {"post": delivery}}}


def event_name(kind: EventType) -> str:
    """Return the name of an event's envelope in the document: `CheckoutAuthorizedEvent`."""
    return "".join(word.title() for word in re.split("[._]", kind.value)) + "Event"


def listed_event() -> Schema:
    """Return the schema of an event in the feed."""
    names = (
        event_name(EventType.AUTHORIZED),
        event_name(EventType.VOIDED),
        "ListedOptedInEvent",
        "OtherEvent",
    )
    return {"type": "object", "anyOf": list(map(reference_to, names))}


def schemas(registry: ComponentRegistry) -> Schema:
    """Return the schemas of all event envelopes. The schema `Event` selects one of them by the event's `type`.

    Also register the schemas of the events' data.
    """
    components.register(registry, *filter(None, DATA.values()))
    names = {kind.value: event_name(kind) for kind in DATA}
    mapping = {kind: f"#/components/schemas/{name}" for kind, name in names.items()}
    any_of_them = {
        "description": "Any event. More types can be added: answer 2xx to a type that you do not know.",
        "oneOf": [reference_to(name) for name in names.values()],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }
    named = {event_name(kind): _envelope_schema(kind) for kind in DATA}
    return named | {
        "ListedOptedInEvent": _listed_opted_in_schema(),
        "OtherEvent": _other_event_schema(),
        "Event": any_of_them,
    }


def _listed_opted_in_schema() -> Schema:
    """Return the schema of a `marketing.opted_in` event in the feed, where its personal data can be withheld.

    Rule events.personal. The data is an object or null, because generators cannot write a property that is
    only null.
    """
    envelope = _envelope_schema(EventType.OPTED_IN)
    why = "Null without the scope `customers:read`, and after deletion, a week after the delivery ended."
    nullable = {"oneOf": [reference_to("OptedInData"), {"type": "null"}], "description": why}
    envelope["properties"]["data"] = nullable
    return envelope | {"description": "The event in the feed. Its data can be withheld."}


def _other_event_schema() -> Schema:
    """Return the schema that existing clients use for event types that are added later."""
    known = [kind.value for kind in DATA]
    envelope = _envelope_schema(EventType.TEST) | {"description": "An event of a type that was added later."}
    kind = {"type": "string", "not": {"enum": known}, "description": "A type that is not listed above."}
    inside = {"oneOf": [reference_to("OtherData"), {"type": "null"}], "description": "The event's data."}
    envelope["properties"] |= {"type": kind, "data": inside}
    return envelope


def _path_item_of(kind: EventType) -> Schema:
    summary, description = SENTENCES[kind]
    body = {"schema": reference_to(event_name(kind))} | components.example_member(
        examples.event_example(kind.value)
    )
    return {
        "operationId": kind.value.replace(".", "_"),
        "summary": summary,
        "description": description,
        "tags": ["Events"],
        "security": [],
        "externalDocs": {
            "description": "JSON Schema (draft 2020-12) of the body.",
            "url": f"{settings.BASE_URL}{SCHEMA_PATH.format(event_type=kind.value)}",
        },
        "parameters": [_header_parameter(name, text) for name, text in SIGNATURE_HEADERS.items()],
        "requestBody": {"required": True, "content": components.json(body)},
        "responses": _DELIVERY_RESPONSES,
    }


def _header_parameter(name: str, text: str) -> Schema:
    kind = {"type": "string", "format": "uuid"} if name in UUIDS else {"type": "string"}
    shape = {"schema": kind}
    return {"name": name, "in": "header", "required": True, "description": text} | shape


def _envelope_schema(kind: EventType) -> Schema:
    data = DATA[kind]
    envelope: Schema = {
        "id": {
            "type": "string",
            "format": "uuid",
            "description": "The id of the event, the same in every attempt. Use it to ignore duplicates.",
        },
        "type": {"type": "string", "enum": [kind.value], "description": "The type of the event."},
        "api_version": OpenChoice([API_VERSION]).schema() | {"description": "The envelope's version."},
        "created_at": Time().schema() | {"description": "When the event occurred."},
        "data": _NOTHING
        if data is None
        else reference_to(components.name_of(data)) | {"description": "The event's data."},
    }
    return {"type": "object", "required": list(envelope), "properties": envelope}
