"""The API's document (OpenAPI 3.1), which drf-spectacular makes from the views, serializers and tables."""

import re
from collections.abc import Collection, Iterator
from email.utils import parseaddr
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import append_meta
from rest_framework.serializers import ListField
from rest_framework.views import APIView

import checkout.api.schema.endpoints
import hosted_page.opt_in.api
import hosted_page.sandbox.schema
import webhooks.api.schema
from checkout.api.idempotency import RecordedView
from checkout.api.schema import shapes
from checkout.api.schema.shapes import ALWAYS, SOMETIMES
from config.lib.described import DescribedOperation, DescribedResponse
from config.lib.once import Once
from config.lib.web import deprecated
from config.openapi import errors, examples, field_table, fields, guide, parts
from config.openapi.fields import WRAPPED

Schema = dict[str, Any]
TABLES = {
    "Checkouts": checkout.api.schema.endpoints.ENDPOINTS,
    "Webhooks": webhooks.api.schema.ENDPOINTS,
    "Marketing": hosted_page.opt_in.api.ENDPOINTS,
    "Sandbox": hosted_page.sandbox.schema.ENDPOINTS,
}
ENDPOINTS = {key: endpoint for named in TABLES.values() for key, endpoint in named.items()}
NAMES = [endpoint.name for endpoint in ENDPOINTS.values()]
TAGS = {key: tag for tag, named in TABLES.items() for key in named}
SHAPES = {
    **shapes.SHAPES,
    **webhooks.api.schema.SHAPES,
    **hosted_page.opt_in.api.SHAPES,
    **hosted_page.sandbox.schema.SHAPES,
    **parts.SHAPES,
}
_REFERENCE = re.compile(rb'"#/components/schemas/(\w+)"')


class EndpointSchema(AutoSchema):
    """Describes a view's method by its row in the tables and by the serializers that the row names."""

    @property
    def _key(self) -> tuple[type[APIView], str]:
        return type(self.view), self.method

    @property
    def _endpoint(self) -> DescribedOperation:
        return ENDPOINTS[self._key]

    def get_operation_id(self) -> str:
        return self._endpoint.name

    def get_summary(self) -> str:
        return self._endpoint.summary

    def get_description(self) -> str:  # type: ignore[override]  # as in the class above, DRF's has arguments
        return self._endpoint.description

    def get_tags(self) -> list[str]:
        return [TAGS[self._key]]

    def get_override_parameters(self) -> list[Any]:
        return [self._endpoint.query] if self._endpoint.query else []

    def get_request_serializer(self) -> Any:
        return self._endpoint.takes

    def get_response_serializers(self) -> None:
        """Return None, because `_get_response_bodies` reads the row instead."""

    def get_serializer_name(self, serializer: Any, direction: str) -> str:
        return re.sub("In$", "Request", type(serializer).__name__)

    def _map_serializer_field(self, field: Any, direction: str, bypass_extensions: bool = False) -> Schema:
        own = fields.kind_of(field)
        if own is not None:
            return dict(append_meta(own, self._get_serializer_field_meta(field, direction)))  # type: ignore[no-untyped-call]  # untyped there
        schema: Schema = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]  # untyped there
        is_filled = isinstance(field, ListField) and not field.allow_empty
        return schema | {"minItems": 1} if is_filled else schema

    def _get_parameters(self) -> list[Schema]:
        own = [{"$ref": "#/components/parameters/RequestId"}]
        if self._is_recorded:
            own.insert(0, {"$ref": "#/components/parameters/IdempotencyKey"})
        found: list[Schema] = super()._get_parameters()
        return found + own

    def _get_request_body(self, direction: str = "request") -> Schema | None:
        body: Schema | None = super()._get_request_body(direction)  # type: ignore[no-untyped-call]  # untyped there
        example = examples.request(self._endpoint.name)
        if body is not None and example is not None:
            body["content"]["application/json"]["example"] = example
        return body

    def _get_response_bodies(self, direction: str = "response") -> Schema:
        answers = self._endpoint.answers.items()
        return {str(status): self._answer(status, answer) for status, answer in answers} | errors.responses(
            self._codes()
        )

    def _answer(self, status: int, answer: DescribedResponse) -> Schema:
        names = ["X-Request-Id", *(["Idempotent-Replay"] if self._is_recorded else [])]
        headers = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
        described: Schema = {"description": answer.sentence, "headers": headers}
        if answer.shape is None:
            return described
        media: Schema = {"schema": fields.refer(answer.shape + WRAPPED)}
        example = examples.answer(self._endpoint.name, status)
        if example is not None:
            media["example"] = example
        return described | {"content": {"application/json": media}}

    def _codes(self) -> set[str]:
        """Return the error codes that every call can return, those that its shape implies, and its own."""
        endpoint = self._endpoint
        by_shape = {
            errors.WITH_BODY: self.method == "POST",
            errors.WITH_FIELDS: bool(endpoint.takes or endpoint.query),
            errors.WITH_CURSOR: endpoint.query is not None and "cursor" in endpoint.query().fields,
            errors.WITH_CHECKOUT: "{checkout_uuid}" in self.path,
            errors.WITH_KEY: self._is_recorded,
        }
        shaped = (code for codes, fits in by_shape.items() if fits for code in codes)
        return {*errors.ANY, *shaped, *endpoint.codes}

    @property
    def _is_recorded(self) -> bool:
        return self.method == "POST" and isinstance(self.view, RecordedView)


def described(endpoints: list[Any]) -> list[Any]:
    """Return the endpoints that the tables name, in the tables' order. Preprocessing hook."""
    order = list(ENDPOINTS)
    named = [row for row in endpoints if (row[3].cls, row[2]) in ENDPOINTS]
    return sorted(named, key=lambda row: order.index((row[3].cls, row[2])))


def complete(result: Schema, generator: SchemaGenerator, **_: Any) -> Schema:
    """Add the OAuth endpoints, the webhooks, and a description of every field. Postprocessing hook."""
    result["paths"] = parts.oauth_paths() | result["paths"]
    result["webhooks"] = parts.webhooks()
    components = generator.registry.build({})
    requests = _without_defaults(components["schemas"])
    own = parts.events() | fields.FREE | _wrappers(result["paths"])
    shown = _shown({"paths": result["paths"], "own": own}, requests.keys() | own.keys(), requests)
    components["schemas"] = dict(sorted((requests | shown).items())) | own
    components |= {"headers": parts.HEADERS, "parameters": parts.PARAMETERS}
    result["components"] = components | {"examples": _examples()}
    _add_states(components["schemas"]["Checkout"]["properties"])
    _add_words(result)
    _mark_deprecated(result["paths"])
    cleaned: Schema = _without_marks(result)
    return cleaned


def _wrappers(paths: Schema) -> Schema:
    """Return the named envelopes of responses. Without names, code generators would number them."""
    names = sorted(name for name in _named(paths) if name.endswith(WRAPPED))
    return {name: _wrapper(name.removesuffix(WRAPPED)) for name in names}


def _wrapper(thing: str) -> Schema:
    content = fields.refer(thing) | {"description": "What you asked for."}
    return {"type": "object", "required": ["data"], "properties": {"data": content}}


def _without_defaults(requests: Schema) -> Schema:
    """Move each field's default to `x-default`, because generators make a field with a `default` required."""
    for request in requests.values():
        for field in request["properties"].values():
            if field.get("default"):
                field["x-default"] = field["default"]
            field.pop("default", None)
    return requests


def _shown(calls: Schema, known: Collection[str], requests: Schema) -> Schema:
    """Return the objects that calls and events use, and the objects inside them, without the known ones."""
    made: Schema = {}
    while missing := (_named(calls) | _named(made)) - made.keys() - set(known):
        made |= {name: _shape(name, requests) for name in missing}
    return made


def _named(part: Schema) -> set[str]:
    return {name.decode() for name in _REFERENCE.findall(orjson.dumps(part))}


def _shape(name: str, requests: Schema) -> Schema:
    """Return an object's schema from its row in SHAPES: `name?` can be null, `[name]` can be missing."""
    properties, required = {}, []
    for word in SHAPES[name].split():
        field = word.strip("[]?")
        kind = field_table.described(name, field, requests)
        properties[field] = _or_null(kind) if "?" in word else kind
        if not word.startswith("["):
            required.append(field)
    return {"type": "object", "properties": properties, "required": sorted(required)}


def _or_null(kind: Schema) -> Schema:
    if "oneOf" in kind or "null" in kind.get("type", ()):  # the request's field allows null already
        return kind
    if "$ref" in kind:
        return {"oneOf": [kind, {"type": "null"}]}
    values = {"enum": [*kind["enum"], None]} if "enum" in kind else {}
    return kind | values | {"type": [kind["type"], "null"]}


def _examples() -> Schema:
    return {code: shown for code, shown in errors.by_code().items() if code not in errors.ANYWHERE}


def _without_marks(value: Any) -> Any:
    """Remove drf-spectacular's marks on enums."""
    if isinstance(value, dict):
        return {name: _without_marks(part) for name, part in value.items() if name != "x-spec-enum-id"}
    return [_without_marks(part) for part in value] if isinstance(value, list) else value


def _add_states(properties: Schema) -> None:
    for name in {**ALWAYS, **SOMETIMES}:
        states = {"always": ALWAYS.get(name, ()), "sometimes": SOMETIMES.get(name, ())}
        properties[name]["x-states"] = {
            kind: [str(state) for state in found] for kind, found in states.items()
        }


def _add_words(result: Schema) -> None:
    for name, schema in result["components"]["schemas"].items():
        for field, described in schema.get("properties", {}).items():
            described.setdefault("description", field_table.words_on(name, field))
    for parameter in _parameters(result):
        parameter.setdefault("description", field_table.words_on("query", parameter["name"]))


def _parameters(result: Schema) -> Iterator[Schema]:
    for methods in result["paths"].values():
        for operation in methods.values():
            yield from (found for found in operation["parameters"] if "name" in found)


def _mark_deprecated(paths: Schema) -> None:
    for path, methods in paths.items():
        for method, operation in methods.items():
            if deprecated.headers(method.upper(), path):
                operation["deprecated"] = True


@Once
def document() -> Schema:
    """Return the document. It is made once, because its generator cannot make two at the same time."""
    made: Schema = SchemaGenerator().get_schema(request=None, public=True)
    made["info"] |= {
        "description": guide.text(made),
        "contact": _contact(),
        "x-environment": settings.ENVIRONMENT,  # listen.py reads this before it sends a secret
    }
    made["tags"] = [{"name": name, "description": guide.of_tag(name)} for name in _used_tags(made)]
    return made


def _contact() -> Schema:
    return {"name": "Support", "email": parseaddr(settings.SUPPORT_EMAIL)[1]}


def _used_tags(made: Schema) -> list[str]:
    paths = [*made["paths"].values(), *made["webhooks"].values()]
    return list(dict.fromkeys(tag for methods in paths for call in methods.values() for tag in call["tags"]))


@Once
def _written() -> bytes:
    return orjson.dumps(document(), option=orjson.OPT_INDENT_2)


@require_safe
def api_schema(request: HttpRequest) -> HttpResponse:
    """Serve the document at GET /api/schema."""
    return HttpResponse(
        _written(), content_type="application/json", headers={"Cache-Control": "public, max-age=300"}
    )
