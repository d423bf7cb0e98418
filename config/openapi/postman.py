"""The API's document as a Postman collection, v2.1 (GET /api/docs/postman.json, rule api.postman)."""

import re
from collections.abc import Iterator
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from config.lib.once import Once
from config.openapi import postman_purchase, schema

Schema = dict[str, Any]
FORMAT = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
JSON = "application/json"
# Values that differ between readers or between runs are variables.
FILLED = {
    "client_id": "{{client_id}}",
    "client_secret": "{{client_secret}}",
    "merchant_refund_ref": "R-{{$guid}}",
    "url": "{{webhook_url}}",
}
_IN_BRACES = re.compile(r"{(\w+)}")


@require_safe
def collection(request: HttpRequest) -> HttpResponse:
    """Serve the collection at GET /api/docs/postman.json."""
    named = {"Content-Disposition": 'attachment; filename="checkout.postman_collection.json"'}
    headers = {"Cache-Control": "public, max-age=300"} | named
    return HttpResponse(_written(), content_type=JSON, headers=headers)


@Once
def _written() -> bytes:
    return orjson.dumps(made(), option=orjson.OPT_INDENT_2)


def made() -> Schema:
    """Return the collection: in the sandbox first a complete purchase, then a folder for each tag."""
    document = schema.document()
    info = {"name": document["info"]["title"], "description": _about(), "schema": FORMAT}
    folders = [_folder(document, tag) for tag in document["tags"]]
    purchase = [postman_purchase.folder(_requests(document))] if settings.SANDBOX else []
    filled = [folder for folder in folders if folder["item"]]
    return {"info": info, "auth": _auth(), "variable": _variables(), "item": [*purchase, *filled]}


def _about() -> str:
    return (
        "Set the variables `client_id` and `client_secret`, then get a token: under Authorization, or by the request "
        "*Get an access token*, which keeps it for all others."
    )


def _auth() -> Schema:
    """Return the settings of OAuth 2.0 with client credentials. Automatic runs use `access_token`."""
    words = {
        "grant_type": "client_credentials",
        "accessTokenUrl": "{{base_url}}/oauth/token",
        "clientId": "{{client_id}}",
        "clientSecret": "{{client_secret}}",
        "client_authentication": "body",
        "addTokenTo": "header",
        "headerPrefix": "Bearer",
        "tokenName": "Merchant Checkout Service",
        "accessToken": "{{access_token}}",
    }
    return {"type": "oauth2", "oauth2": [_typed(key, value) for key, value in words.items()]}


def _variables() -> list[Schema]:
    words = {
        "base_url": settings.BASE_URL,
        "client_id": "",
        "client_secret": "",
        "webhook_url": "https://shop.example/webhooks",
        "access_token": "",
        "checkout_uuid": "",
    }
    return [_typed(key, value) for key, value in words.items()]


def _typed(key: str, value: str) -> Schema:
    return {"key": key, "value": value, "type": "string"}


def _folder(document: Schema, tag: Schema) -> Schema:
    items = [item for name, item in _requests(document).items() if _tag(document, name) == tag["name"]]
    items.sort(key=lambda item: item["request"]["method"] == "DELETE")  # deletions come last
    return {"name": tag["name"], "description": tag["description"], "item": items}


def _tag(document: Schema, name: str) -> str:
    return next(str(call["tags"][0]) for _, _, call in _operations(document) if call["operationId"] == name)


def _operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def _requests(document: Schema) -> dict[str, Schema]:
    """Return each call of the document as an item of the collection, by the call's name."""
    return {
        call["operationId"]: _item(document, path, method, call)
        for path, method, call in _operations(document)
    }


def _item(document: Schema, path: str, method: str, call: Schema) -> Schema:
    sent = call.get("requestBody", {}).get("content", {}).get(JSON)
    request: Schema = {
        "method": method,
        "description": call["description"],
        "header": _headers(document, call) + ([{"key": "Content-Type", "value": JSON}] if sent else []),
        "url": _url(path, _parameters(document, call, "query")),
    }
    if sent:
        raw = orjson.dumps(_filled(sent["example"]), option=orjson.OPT_INDENT_2).decode()
        request["body"] = {"mode": "raw", "raw": raw, "options": {"raw": {"language": "json"}}}
    if not call["security"]:
        request["auth"] = {"type": "noauth"}
    events = postman_purchase.kept_by(call["operationId"])
    responses = [_response(request, *answered) for answered in call["responses"].items()]
    shown = [response for response in responses if response is not None]
    return {"name": call["summary"], "event": events, "request": request, "response": shown}


def _parameters(document: Schema, call: Schema, place: str) -> list[Schema]:
    known = document["components"]["parameters"]
    found = (known[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in call["parameters"])
    return [one for one in found if one["in"] == place]


def _headers(document: Schema, call: Schema) -> list[Schema]:
    """Return the optional headers. They are disabled, except the idempotency key of a create."""
    is_kept = call["operationId"] == "create_checkout"
    return [
        {
            "key": one["name"],
            "value": "{{$guid}}",
            "description": one["description"],
            "disabled": not (is_kept and one["name"] == "Idempotency-Key"),
        }
        for one in _parameters(document, call, "header")
    ]


def _url(path: str, query: list[Schema]) -> Schema:
    """Return the address. Its query parameters are disabled."""
    named = _IN_BRACES.sub(r"{{\1}}", path)
    shown: Schema = {
        "raw": f"{{{{base_url}}}}{named}",
        "host": ["{{base_url}}"],
        "path": named[1:].split("/"),
    }
    if query:
        shown["query"] = [
            {"key": one["name"], "value": "", "description": one["description"], "disabled": True}
            for one in query
        ]
    return shown


def _filled(example: Any) -> Any:
    """Return an example body with variables for the values that differ."""
    return {name: FILLED.get(name, value) for name, value in example.items()}


def _response(request: Schema, status: str, answer: Schema) -> Schema | None:
    """Return a recorded answer as an example of the collection, None if there is none."""
    media = answer.get("content", {}).get(JSON, {})
    if "example" not in media:
        return None
    return {
        "name": answer["description"],
        "originalRequest": request,
        "code": int(status),
        "header": [{"key": "Content-Type", "value": JSON}],
        "body": orjson.dumps(media["example"], option=orjson.OPT_INDENT_2).decode(),
        "_postman_previewlanguage": "json",
    }
