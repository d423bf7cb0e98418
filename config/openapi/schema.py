"""The API's document (OpenAPI 3.1). drf-spectacular makes it from the views, serializers and tables."""

import re
from email.utils import parseaddr
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from rest_framework.serializers import ListField
from rest_framework.views import APIView

import checkout.api.schema
import hosted_page.opt_in.api
import hosted_page.sandbox.schema
import webhooks.api.schema
from checkout.api.idempotency import RecordedView
from checkout.api.responses import CheckoutOut
from config.lib.api.described import DescribedOperation, DescribedResponse
from config.lib.once import Once
from config.lib.web import deprecated
from config.openapi import components, errors, events, examples, extensions, oauth  # noqa: F401  # extensions register themselves
from portal.developer_docs import guide
from portal.developer_docs.public_bodies import PublicBody, public_body, public_response
from portal.developer_docs.reference import WRAPPED, Reference

Schema = dict[str, Any]
SUBSCRIPTION = "/api/merchant/v1/webhooks/subscription"
TABLES = {
    "Checkouts": checkout.api.schema.ENDPOINTS,
    "Webhooks": webhooks.api.schema.ENDPOINTS,
    "Marketing": hosted_page.opt_in.api.ENDPOINTS,
    "Sandbox": hosted_page.sandbox.schema.ENDPOINTS,
}
ENDPOINTS = {key: endpoint for named in TABLES.values() for key, endpoint in named.items()}
NAMES = [endpoint.name for endpoint in ENDPOINTS.values()]
TAGS = {key: tag for tag, named in TABLES.items() for key in named}
_REFERENCE = re.compile(rb'"#/components/schemas/(\w+)"')


class EndpointSchema(AutoSchema):
    """Describes a method of a view. It uses the method's row in TABLES and the serializers that this row names."""

    @property
    def _view_and_method(self) -> tuple[type[APIView], str]:
        return type(self.view), self.method

    @property
    def _described_endpoint(self) -> DescribedOperation:
        return ENDPOINTS[self._view_and_method]

    def get_operation_id(self) -> str:
        return self._described_endpoint.name

    def get_summary(self) -> str:
        return self._described_endpoint.summary

    def get_description(self) -> str:  # type: ignore[override]  # as in the class above, DRF's has arguments
        return self._described_endpoint.description

    def get_tags(self) -> list[str]:
        return [TAGS[self._view_and_method]]

    def get_override_parameters(self) -> list[Any]:
        return [self._described_endpoint.query] if self._described_endpoint.query else []

    def get_request_serializer(self) -> Any:
        return self._described_endpoint.body

    def get_response_serializers(self) -> None:
        """Return None, because `_get_response_bodies` reads the row instead."""

    def get_serializer_name(self, serializer: Any, direction: str) -> str:
        return components.name_of(type(serializer))

    def _map_serializer_field(self, field: Any, direction: str, bypass_extensions: bool = False) -> Schema:
        schema: Schema = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]  # untyped there
        is_filled = isinstance(field, ListField) and not field.allow_empty
        return schema | {"minItems": 1} if is_filled else schema

    def _get_parameters(self) -> list[Schema]:
        own = [{"$ref": "#/components/parameters/RequestId"}]
        if self._is_recorded:
            own.insert(0, {"$ref": "#/components/parameters/IdempotencyKey"})
        parameters: list[Schema] = super()._get_parameters()
        for parameter in parameters:
            if parameter["in"] == "path":
                parameter["description"] = "The id of the checkout."
        return parameters + own

    def _get_request_body(self, direction: str = "request") -> Schema | None:
        body: Schema | None = super()._get_request_body(direction)  # type: ignore[no-untyped-call]  # untyped there
        example = examples.request_example(self._described_endpoint.name)
        if body is not None and example is not None:
            body["content"]["application/json"]["example"] = example
        return body

    def _get_response_bodies(self, direction: str = "response") -> Schema:
        answers = self._described_endpoint.answers.items()
        return {
            str(status): self._describe_answer(status, answer) for status, answer in answers
        } | errors.error_responses(self._all_error_codes())

    def _describe_answer(self, status: int, answer: DescribedResponse) -> Schema:
        names = ["X-Request-Id"]
        names += ["Idempotent-Replay"] if self._is_recorded else []
        names += ["X-Ignored-Fields", "X-Suggested-Fields"] if self.method == "POST" else []
        headers = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
        described: Schema = {"description": answer.sentence, "headers": headers}
        if answer.body is None:
            return described
        self.resolve_serializer(answer.body, "response")
        media = {"schema": components.reference_to(components.name_of(answer.body) + WRAPPED)}
        example = examples.response_example(self._described_endpoint.name, status)
        return described | {"content": components.json(media | components.example_member(example))}

    def _all_error_codes(self) -> set[str]:
        """Return all error codes of the call.

        Every call can return some of these codes. Others depend on the call's form, such as a body or a
        cursor. The call's row in TABLES names the remaining codes.
        """
        endpoint = self._described_endpoint
        by_shape = {
            errors.WITH_BODY: self.method == "POST",
            errors.WITH_CURSOR: endpoint.query is not None and "cursor" in endpoint.query().fields,
            errors.WITH_CHECKOUT: "{checkout_uuid}" in self.path,
            errors.WITH_KEY: self._is_recorded,
        }
        shaped = (code for codes, fits in by_shape.items() if fits for code in codes)
        return {*errors.ANY_CALL_CODES, *shaped, *endpoint.codes}

    @property
    def _is_recorded(self) -> bool:
        return self.method == "POST" and isinstance(self.view, RecordedView)


def select_described(endpoints: list[Any]) -> list[Any]:
    """Return the endpoints that TABLES names, in the order of TABLES. This is a preprocessing hook."""
    order = list(ENDPOINTS)
    named = [row for row in endpoints if (row[3].cls, row[2]) in ENDPOINTS]
    return sorted(named, key=lambda row: order.index((row[3].cls, row[2])))


def complete_document(result: Schema, generator: SchemaGenerator, **_: Any) -> Schema:
    """Add the OAuth endpoints, the webhooks and the response envelopes. This is a postprocessing hook.

    Rule api.clients.
    """
    oauth.register(generator.registry)
    components.register(generator.registry, errors.ErrorEnvelopeOut)
    envelopes = events.schemas(generator.registry)
    result["paths"] = oauth.paths() | result["paths"]
    result["webhooks"] = events.webhooks()
    result["paths"][SUBSCRIPTION]["post"]["callbacks"] = events.callbacks()
    parts = generator.registry.build({})
    own = envelopes | {"OtherData": events.OTHER_DATA} | _envelope_schemas(result["paths"])
    parts["schemas"] = _without_defaults(parts["schemas"]) | own
    parts |= {"headers": components.HEADERS, "parameters": components.PARAMETERS}
    result["components"] = parts | {"examples": _error_examples()}
    _add_states(parts["schemas"]["Checkout"]["properties"])
    _mark_deprecated(result["paths"])
    cleaned: Schema = _without_marks(result)
    return cleaned


def _envelope_schemas(paths: Schema) -> Schema:
    """Return the named response envelopes. Without names, code generators would number them."""
    referenced = {name.decode() for name in _REFERENCE.findall(orjson.dumps(paths))}
    names = sorted(name for name in referenced if name.endswith(WRAPPED))
    return {name: _envelope_schema(name.removesuffix(WRAPPED)) for name in names}


def _envelope_schema(name: str) -> Schema:
    content = components.reference_to(name) | {"description": "The resource."}
    return {"type": "object", "required": ["data"], "properties": {"data": content}}


def _without_defaults(requests: Schema) -> Schema:
    """Move each field's default to `x-default`, because generators make a field with a `default` required."""
    for request in requests.values():
        for field in request.get("properties", {}).values():
            if field.get("default"):
                field["x-default"] = field["default"]
            field.pop("default", None)
    return requests


def _error_examples() -> Schema:
    return {
        code: example
        for code, example in errors.examples_by_code().items()
        if code not in errors.NO_OPERATION_CODES
    }


def _without_marks(value: Any) -> Any:
    """Remove the marks that drf-spectacular adds to enums, and its `allOf` around a reference with a description."""
    if isinstance(value, dict):
        value = value | value["allOf"][0] if "allOf" in value else value
        return {
            name: _without_marks(part)
            for name, part in value.items()
            if name not in ("x-spec-enum-id", "allOf")
        }
    return [_without_marks(part) for part in value] if isinstance(value, list) else value


def _add_states(properties: Schema) -> None:
    for name in {**CheckoutOut.ALWAYS, **CheckoutOut.SOMETIMES}:
        states = {
            "always": CheckoutOut.ALWAYS.get(name, ()),
            "sometimes": CheckoutOut.SOMETIMES.get(name, ()),
        }
        properties[name]["x-states"] = {
            kind: [str(state) for state in found] for kind, found in states.items()
        }


def _mark_deprecated(paths: Schema) -> None:
    for path, methods in paths.items():
        for method, operation in methods.items():
            if deprecated.deprecation_headers(method.upper(), path):
                operation["deprecated"] = True


@Once
def document() -> Schema:
    """Return the document. It is made only once, because its generator cannot run twice at the same time."""
    schema: Schema = SchemaGenerator().get_schema(request=None, public=True)
    schema["info"] |= {
        "description": guide.fill_in_values(guide.GUIDE, schema),
        "contact": _support_contact(),
        "license": {"name": "The merchant's agreement with the service", "url": settings.BASE_URL},
        "x-environment": settings.ENVIRONMENT,  # listen.py and mcp.py read this before they send a secret
    }
    schema["tags"] = [
        {"name": name, "description": guide.tag_description(name)} for name in _used_tags(schema)
    ]
    return schema


def _support_contact() -> Schema:
    address = parseaddr(settings.SUPPORT_EMAIL)[1]
    return {"name": "Support", "email": address, "url": f"{settings.BASE_URL}/api/docs"}


def _used_tags(schema: Schema) -> list[str]:
    paths = [*schema["paths"].values(), *schema["webhooks"].values()]
    return sorted({tag for methods in paths for call in methods.values() for tag in call["tags"]})


def reference() -> Reference:
    """Return the document and the error table, for the documentation page."""
    return Reference(document(), NAMES, errors.error_codes())


@Once
def _document_body() -> PublicBody:
    return public_body(orjson.dumps(document(), option=orjson.OPT_INDENT_2), "application/json")


@require_safe
def api_schema(request: HttpRequest) -> HttpResponse:
    """Serve the document at GET /api/schema."""
    return public_response(request, _document_body())
