"""The OAuth endpoints in the API's document (rules token.answer, token.revocation, token.metadata)."""

from functools import partial
from typing import Any

from drf_spectacular.plumbing import ComponentRegistry
from rest_framework import serializers as drf

from config.lib.api.responses import Constant, OpenChoice
from config.openapi import components, examples
from config.openapi.components import reference_to
from portal.oauth import metadata

Schema = dict[str, Any]
SENT = partial(drf.CharField, max_length=2048)


def _word_list_field(help_text: str) -> drf.ListField:
    return drf.ListField(child=drf.CharField(), help_text=help_text)


class TokenRequest(drf.Serializer[Any]):
    """The request for a token, as JSON or as a form."""

    grant_type = Constant("client_credentials", help_text="Always this value.")
    client_id = SENT(required=False, help_text="The client id of your key. Send it here or by HTTP Basic.")
    client_secret = SENT(
        required=False, help_text="Shown once when the key is made. Send it with `client_id`."
    )
    scope = drf.CharField(
        required=False,
        help_text="Scopes, separated by spaces. Without it, the token gets all scopes of the key.",
    )


class TokenOut(drf.Serializer[Any]):
    """An access token."""

    access_token = drf.CharField(help_text="Send it as `Authorization: Bearer <ACCESS_TOKEN>`.")
    token_type = Constant("Bearer", help_text="Always this value.")
    expires_in = drf.IntegerField(
        min_value=1, help_text="The token's lifetime in seconds. Keep it that long."
    )
    scope = drf.CharField(help_text="The scopes of the token, separated by spaces.")


class TokenErrorOut(drf.Serializer[Any]):
    """An error of an OAuth endpoint."""

    error = OpenChoice(
        (
            "invalid_request",
            "invalid_client",
            "invalid_scope",
            "unsupported_grant_type",
            "unauthorized_client",
            "rate_limited",
            "temporarily_unavailable",
        ),
        help_text="A code of RFC 6749, or `rate_limited`.",
    )
    error_description = drf.CharField(
        required=False, help_text="A sentence for a developer that says what to correct."
    )


class RevocationRequest(drf.Serializer[Any]):
    """The request for a revocation, as JSON or as a form."""

    token = SENT(help_text="The access token to revoke.")
    token_type_hint = SENT(required=False, help_text="`access_token`. The service ignores any other hint.")
    client_id = SENT(required=False, help_text="The client id of your key. Send it here or by HTTP Basic.")
    client_secret = SENT(
        required=False, help_text="Shown once when the key is made. Send it with `client_id`."
    )


class ServerMetadataOut(drf.Serializer[Any]):
    """The authorization server's metadata."""

    issuer = drf.URLField(help_text="The authorization server.")
    token_endpoint = drf.URLField(help_text="Where a client gets a token.")
    revocation_endpoint = drf.URLField(help_text="Where a client ends a token.")
    scopes_supported = _word_list_field("All scopes that a key can have.")
    response_types_supported = _word_list_field("Empty, because there is no authorization endpoint.")
    grant_types_supported = _word_list_field("`client_credentials`.")
    token_endpoint_auth_methods_supported = _word_list_field(
        help_text="How a client authenticates: by HTTP Basic or in the body."
    )
    revocation_endpoint_auth_methods_supported = _word_list_field("The same as at the token endpoint.")
    service_documentation = drf.URLField(help_text="The documentation page.")


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


def register(registry: ComponentRegistry) -> None:
    """Register the objects of the OAuth endpoints."""
    components.register(registry, TokenRequest, RevocationRequest, direction="request")
    components.register(registry, TokenOut, TokenErrorOut, ServerMetadataOut)


def paths() -> Schema:
    """Return the OAuth endpoints (rules token.answer, token.revocation, token.metadata)."""
    return {
        "/oauth/token": {"post": _token_endpoint()},
        "/oauth/revoke": {"post": _revocation_endpoint()},
        metadata.PATH: {"get": _metadata_endpoint()},
    }


def _token_endpoint() -> Schema:
    token = {"schema": reference_to("Token")} | components.example_member(
        examples.response_example("get_token", 200)
    )
    return {
        "operationId": "get_token",
        "summary": "Get an access token",
        "description": "Client credentials (RFC 6749), as JSON or as a form. The client can authenticate by "
        "HTTP Basic instead. The response has no `data`. Keep the token until it expires, and do not request "
        "one for each call.",
        **_CLIENT_ENDPOINT,
        "requestBody": _request_body("TokenRequest", examples.request_example("get_token")),
        "responses": {
            "200": {
                "description": "A token.",
                "headers": components.request_id_header(),
                "content": components.json(token),
            },
            **_refusal_responses(TOKEN_REFUSALS),
        },
    }


def _revocation_endpoint() -> Schema:
    return {
        "operationId": "revoke_token",
        "summary": "Revoke an access token",
        "description": "Ends a token of the client at once (RFC 7009). Authenticate as at `/oauth/token`. "
        "The response is the same for an unknown token and for a token of another client, which stays valid.",
        **_CLIENT_ENDPOINT,
        "requestBody": _request_body("RevocationRequest", examples.request_example("revoke_token")),
        "responses": {
            "200": {
                "description": "The client no longer has such a token.",
                "headers": components.request_id_header(),
            },
            **_refusal_responses(REVOCATION_REFUSALS),
        },
    }


def _metadata_endpoint() -> Schema:
    described = {"schema": reference_to("ServerMetadata"), "example": metadata.describe_server()}
    return {
        "operationId": "read_server_metadata",
        "summary": "Read the authorization server's metadata",
        "description": "OAuth clients configure themselves with it (RFC 8414). The response has no `data`.",
        **_CLIENT_ENDPOINT,
        "responses": {
            "200": {
                "description": "The metadata.",
                "headers": components.request_id_header(),
                "content": components.json(described),
            },
            "405": {
                "description": "Use GET.",
                "headers": components.request_id_header(),
                "content": components.json({"schema": reference_to("ErrorEnvelope")}),
            },
        },
    }


_CLIENT_ENDPOINT: Schema = {
    "tags": ["Token"],
    "security": [],
    "parameters": [{"$ref": "#/components/parameters/RequestId"}],
}


def _request_body(body: str, example: Any) -> Schema:
    """Return the request body. Its JSON form and its form encoding share one schema.

    Some code generators do not make a class for a schema that only a form uses.
    """
    media = {"schema": reference_to(body)} | components.example_member(example)
    return {
        "required": True,
        "content": {"application/json": media, "application/x-www-form-urlencoded": media},
    }


def _refusal_responses(sentences: dict[str, str]) -> dict[str, Schema]:
    refusals: dict[str, Schema] = {
        status: {
            "description": description,
            "headers": components.request_id_header(),
            "content": components.json({"schema": reference_to("TokenError")}),
        }
        for status, description in sentences.items()
    }
    for later in ("429", "503"):
        refusals[later]["headers"]["Retry-After"] = {"$ref": "#/components/headers/Retry-After"}
    return refusals
