"""The parts of the API's document outside the merchant API: headers, OAuth endpoints and events."""

import re
from typing import Any

from checkout.api.schema import shapes
from config.openapi import examples, fields
from config.openapi.fields import refer
from portal.oauth import metadata
from webhooks.models import EventType
from webhooks.outbox import API_VERSION

Schema = dict[str, Any]

HEADERS: Schema = {
    "X-Request-Id": {
        "description": "Your own id for the call, or one that the service made. Our logs have it too.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
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
        "description": "Your own id for the call. If it does not match the pattern, the service makes one.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "Makes the call safe to repeat for 24 hours. The same key with the same bytes returns "
        "the stored response, and the call takes effect only once.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[\\x20-\\x7E]+$"},
    },
}
TOKEN_REQUEST = "grant_type [client_id] [client_secret] [scope]"
REVOCATION_REQUEST = "token [token_type_hint] [client_id] [client_secret]"
SHAPES = {
    "ApiError": "error",
    "ApiErrorBody": "code message param? details request_id doc_url",
    "ApiErrorDetail": "[param?] [message] [expected] [actual] [difference] [status] [available_actions] [dispute]"
    " [reason] [previous_secret_expires_at]",
    "TokenRequest": TOKEN_REQUEST,
    # A second name, because with one name for both media types, generators would send JSON as a form.
    "TokenForm": TOKEN_REQUEST,
    "Token": "access_token token_type expires_in scope",
    "TokenError": "error [error_description]",
    "RevocationRequest": REVOCATION_REQUEST,
    "RevocationForm": REVOCATION_REQUEST,
    "ServerMetadata": "issuer token_endpoint revocation_endpoint scopes_supported response_types_supported"
    " grant_types_supported token_endpoint_auth_methods_supported revocation_endpoint_auth_methods_supported"
    " service_documentation",
}
TOKEN_REFUSALS = {
    "400": "The request is not valid: `invalid_request`, `invalid_scope` or `unsupported_grant_type`.",
    "401": "`invalid_client`: the client is unknown, or its secret is wrong.",
    "405": "`invalid_request`: use POST.",
    "408": "`invalid_request`: the body did not arrive in time, or not completely.",
    "413": "`invalid_request`: the body is too large.",
    "429": "`rate_limited`: too many failures. Wait for `Retry-After` seconds.",
    "503": "`temporarily_unavailable`: the service cannot answer now. Try again after `Retry-After` seconds.",
}


REVOCATION_REFUSALS = TOKEN_REFUSALS | {"400": "The request is not valid: `invalid_request`."}


def oauth_paths() -> Schema:
    """Return the OAuth endpoints (rules token.answer, token.revocation, token.metadata)."""
    return {
        "/oauth/token": {"post": _token()},
        "/oauth/revoke": {"post": _revocation()},
        metadata.PATH: {"get": _metadata()},
    }


def _token() -> Schema:
    token = {"schema": refer("Token")} | _example(examples.answer("get_token", 200))
    return {
        "operationId": "get_token",
        "summary": "Get an access token",
        "description": "Client credentials (RFC 6749), as JSON or as a form. The client can authenticate by "
        "HTTP Basic instead. The response has no `data`. Keep the token until it expires, and do not request "
        "one for each call.",
        **_OF_CLIENTS,
        "requestBody": _sent("TokenRequest", "TokenForm", examples.request("get_token")),
        "responses": {
            "200": {"description": "A token.", "headers": _request_id(), "content": _content(token)},
            **_refusals(TOKEN_REFUSALS),
        },
    }


def _revocation() -> Schema:
    return {
        "operationId": "revoke_token",
        "summary": "Revoke an access token",
        "description": "Ends a token of the client at once (RFC 7009). Authenticate as at `/oauth/token`. "
        "The response is the same for an unknown token and for a token of another client, which stays valid.",
        **_OF_CLIENTS,
        "requestBody": _sent("RevocationRequest", "RevocationForm", examples.request("revoke_token")),
        "responses": {
            "200": {"description": "The client no longer has such a token.", "headers": _request_id()},
            **_refusals(REVOCATION_REFUSALS),
        },
    }


def _metadata() -> Schema:
    described = {"schema": refer("ServerMetadata"), "example": metadata.describe()}
    return {
        "operationId": "read_server_metadata",
        "summary": "Read the authorization server's metadata",
        "description": "OAuth clients configure themselves with it (RFC 8414). The response has no `data`.",
        **_OF_CLIENTS,
        "responses": {
            "200": {"description": "The metadata.", "headers": _request_id(), "content": _content(described)},
            "405": {
                "description": "Use GET.",
                "headers": _request_id(),
                "content": _content({"schema": refer("ApiError")}),
            },
        },
    }


_OF_CLIENTS: Schema = {
    "tags": ["Token"],
    "security": [],
    "parameters": [{"$ref": "#/components/parameters/RequestId"}],
}


def _sent(body: str, form: str, example: Any) -> Schema:
    return {
        "required": True,
        "content": {
            "application/json": {"schema": refer(body)} | _example(example),
            "application/x-www-form-urlencoded": {"schema": refer(form)},
        },
    }


def _refusals(sentences: dict[str, str]) -> dict[str, Schema]:
    refusals: dict[str, Schema] = {
        status: {
            "description": description,
            "headers": _request_id(),
            "content": _content({"schema": refer("TokenError")}),
        }
        for status, description in sentences.items()
    }
    for later in ("429", "503"):
        refusals[later]["headers"]["Retry-After"] = {"$ref": "#/components/headers/Retry-After"}
    return refusals


SENTENCES = {
    EventType.AUTHORIZED: (
        "The customer has paid; the funds are held",
        "Verify the signature, and ignore an event whose `id` you have already processed. Capture, or cancel "
        "an order that you cannot fulfil. Then answer 2xx. All of this must end within 15 seconds. The hold "
        "ends two minutes after `created_at`.",
    ),
    EventType.VOIDED: (
        "An authorization was released",
        "You cancelled it, or it was not captured within two minutes. No money was taken.",
    ),
    EventType.OPTED_IN: (
        "A customer ticked your marketing opt-in box",
        "Sent for every tick, including repeats on the same order. The newest one is current. It is the only "
        "event with personal data. It does not say whether the order was paid.",
    ),
    EventType.TEST: (
        "A test, sent from the portal",
        "Sent regardless of the types that you subscribe to. It is not about a checkout. Check the signature "
        "and answer 2xx.",
    ),
}
SIGNATURE_HEADERS = {
    "X-Service-Signature": "`t=<unix seconds>,v1=<hex>`, and one more `,v1=<hex>` for each previous secret "
    "that still signs.",
    "X-Service-Timestamp": "The same Unix seconds.",
    "X-Service-Event-Id": "The same as `id` in the body.",
    "X-Service-Event-Type": "The same as `type` in the body.",
    "X-Service-Delivery-Attempt": "1 for the first attempt.",
    "webhook-id": "The same as `id`, for the libraries of Standard Webhooks.",
    "webhook-timestamp": "The Unix seconds, for the same libraries.",
    "webhook-signature": "`v1,<base64>`, for the same libraries.",
}


_NOTHING: Schema = {"type": "object", "description": "Not about a checkout."}
UUIDS = ("X-Service-Event-Id", "webhook-id")


def webhooks() -> Schema:
    """Return the events that we send (rule event.types), each with its envelope."""
    return {kind.value: {"post": _event(kind)} for kind in shapes.EVENT_DATA}


def event_name(kind: EventType) -> str:
    """Return the name of an event's envelope in the document: `CheckoutAuthorizedEvent`."""
    return "".join(word.title() for word in re.split("[._]", kind.value)) + "Event"


def events() -> Schema:
    """Return the schema of each envelope, and one of any envelope, with `type` as the discriminator."""
    names = {kind.value: event_name(kind) for kind in shapes.EVENT_DATA}
    mapping = {kind: f"#/components/schemas/{name}" for kind, name in names.items()}
    any_of_them = {
        "description": "Any event. More types can be added: answer 2xx to a type that you do not know.",
        "oneOf": [refer(name) for name in names.values()],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }
    named = {event_name(kind): _envelope(kind) for kind in shapes.EVENT_DATA}
    return named | {"WithheldEvent": _withheld(), "OtherEvent": _other(), "Event": any_of_them}


def _withheld() -> Schema:
    """Return the schema of a listed event whose personal data is withheld (rule events.personal)."""
    envelope = _envelope(EventType.OPTED_IN)
    why = "Null without the scope `customers:read`, and once it is deleted, a week after its delivery ended."
    envelope["properties"]["data"] = {"type": "null", "description": why}
    return envelope


def _other() -> Schema:
    """Return the schema that today's clients use for events of types that are added later."""
    known = [kind.value for kind in shapes.EVENT_DATA]
    envelope = _envelope(EventType.TEST) | {"description": "An event of a type that was added later."}
    kind = {"type": "string", "not": {"enum": known}, "description": "The type: none of those above."}
    inside = {"oneOf": [refer("OtherData"), {"type": "null"}], "description": "The event's data."}
    envelope["properties"] |= {"type": kind, "data": inside}
    return envelope


def _event(kind: EventType) -> Schema:
    summary, description = SENTENCES[kind]
    body = {"schema": refer(event_name(kind))} | _example(examples.event(kind.value))
    return {
        "operationId": kind.value.replace(".", "_"),
        "summary": summary,
        "description": description,
        "tags": ["Events"],
        "security": [],
        "parameters": [_header(name, text) for name, text in SIGNATURE_HEADERS.items()],
        "requestBody": {"required": True, "content": _content(body)},
        "responses": {
            "2XX": {"description": "Delivered."},
            "default": {"description": "A failure, listed in the delivery log. The event can be sent again."},
        },
    }


def _header(name: str, text: str) -> Schema:
    kind = {"type": "string", "format": "uuid"} if name in UUIDS else {"type": "string"}
    shape = {"schema": kind}
    return {"name": name, "in": "header", "required": True, "description": text} | shape


def _envelope(kind: EventType) -> Schema:
    """Return the schema of the body that is posted for an event of this type."""
    shape = shapes.EVENT_DATA[kind]
    envelope: Schema = {
        "id": {
            "type": "string",
            "format": "uuid",
            "description": "The id of the event, the same in every attempt. Deduplicate on it.",
        },
        "type": {"type": "string", "enum": [kind.value], "description": "The type of the event."},
        "api_version": fields.values(API_VERSION) | {"description": "The envelope's version."},
        "created_at": fields.written_time() | {"description": "When the event occurred."},
        "data": _NOTHING if shape is None else refer(shape) | {"description": "The event's data."},
    }
    return {"type": "object", "required": list(envelope), "properties": envelope}


def _content(media: Schema) -> Schema:
    return {"application/json": media}


def _example(value: Any) -> Schema:
    return {} if value is None else {"example": value}


def _request_id() -> Schema:
    return {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}
