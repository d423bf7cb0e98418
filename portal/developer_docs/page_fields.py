"""The fields in the API's document as rows: name, type and description."""

from typing import Any, NamedTuple

from django.utils.safestring import SafeString

from portal.developer_docs import page_text
from portal.developer_docs.reference import WRAPPED

Schema = dict[str, Any]
FREE = ("Metadata", "CustomData", "OtherData")  # objects that can have unknown fields
KINDS = {"date-time": "timestamp", "uuid": "UUID", "uri": "URL", "email": "e-mail address"}


class Row(NamedTuple):
    """A field. `object_name` names the object in it. If `by_state` is true, the field is only sent in some states."""

    name: str
    kind: str
    object_name: str
    is_required: bool
    by_state: bool
    text: SafeString


class ResponseObject(NamedTuple):
    """An object in a response."""

    name: str
    rows: list[Row]


def list_fields(document: Schema, schema: Schema, within: str = "") -> list[Row]:
    """Return the fields of a request or event. Fields of nested objects are named `items[].name`."""
    field_rows = []
    schema = _resolve_reference(document, schema)
    for name, field in schema.get("properties", {}).items():
        field_rows.append(
            _field_row(within + name, field, name in schema.get("required", []))._replace(object_name="")
        )
        inner, step = (field["items"], "[].") if "items" in field else (field, ".")
        field_rows += list_fields(document, inner, f"{within}{name}{step}")
    return field_rows


def list_parameters(document: Schema, operation: Schema) -> list[Row]:
    """Return the path, query and header parameters, except the request id and the checkout's id."""
    resolved = (_resolve_reference(document, parameter) for parameter in operation["parameters"])
    return [
        _field_row(
            parameter["name"],
            parameter["schema"] | {"description": parameter["description"]},
            parameter.get("required", False),
        )
        for parameter in resolved
        if (parameter["in"], parameter["name"]) not in {("header", "X-Request-Id"), ("path", "checkout_uuid")}
    ]


def list_response_objects(document: Schema) -> list[ResponseObject]:
    """Return the objects in responses, in the order in which they appear."""
    names: list[str] = []
    for methods in document["paths"].values():
        for operation in methods.values():
            for answer in operation["responses"].values():
                media = answer.get("content", {}).get("application/json", {})
                _collect_objects(document, media.get("schema", {}), names)
    schemas = document["components"]["schemas"]
    return [ResponseObject(name, _rows_of(schemas[name])) for name in names]


def response_object_name(media: Schema) -> str:
    """Return the name of the object under `data`. Without `data`, return the name of the whole object."""
    return _object_name(media.get("schema", {}))


def _rows_of(schema: Schema) -> list[Row]:
    required = schema.get("required", [])
    return [_field_row(name, field, name in required) for name, field in schema["properties"].items()]


def _collect_objects(document: Schema, schema: Schema, names: list[str]) -> None:
    name = _object_name(schema)
    if name in names or name in FREE:
        return
    if name:
        names.append(name)
        schema = document["components"]["schemas"][name]
    parts = [*schema.get("properties", {}).values(), *schema.get("allOf", []), schema.get("items", {})]
    for part in parts:
        if part:
            _collect_objects(document, part, names)


def _field_row(name: str, field: Schema, is_required: bool) -> Row:
    object_name = _object_name(field) or _object_name(field.get("items", {}))
    object_name = "" if object_name in FREE else object_name
    text = page_text.render_inline(field.get("description", ""))
    return Row(name, _describe_type(field), object_name, is_required, "x-states" in field, text)


def _describe_type(field: Schema) -> str:
    if _object_name(field):
        return "object or null" if "oneOf" in field else "object"
    types = [field["type"]] if isinstance(field.get("type"), str) else field.get("type", ["value"])
    first = types[0]
    if first == "array":
        words = f"list of {_pluralize(field['items'])}"
    elif "x-known-values" in field:
        words = f"one of {', '.join(field['x-known-values'])}"
    elif "enum" in field:
        values = [value for value in field["enum"] if value is not None]
        words = (
            f"always {_as_json(values[0])}" if len(values) == 1 else f"one of {', '.join(map(str, values))}"
        )
    else:
        words = KINDS.get(field.get("format", ""), first)
    default = field.get("default") or field.get("x-default")
    default_words = f", default {default}" if default else ""
    return words + _describe_limits(field) + (" or null" if "null" in types else "") + default_words


def _pluralize(item: Schema) -> str:
    return (
        "objects"
        if _object_name(item)
        else ", ".join(item.get("x-known-values") or item.get("enum") or ["strings"])
    )


def _as_json(value: Any) -> str:
    return page_text.to_json(value) if isinstance(value, bool) else str(value)


def _describe_limits(field: Schema) -> str:
    for minimum, maximum, unit in (
        ("minimum", "maximum", ""),
        ("minItems", "maxItems", ""),
        ("minLength", "maxLength", " characters"),
    ):
        if maximum in field:
            return f", {_describe_range(field.get(minimum), field[maximum])}{unit}"
    return ""


def _describe_range(low: int | None, high: int) -> str:
    if low is None:
        return f"at most {high:,}"
    return f"{low:,}" if low == high else f"{low:,} to {high:,}".replace("-", "−")


def _object_name(schema: Schema) -> str:
    """Return the name of the object in a field, without the suffix for envelopes, or "" if there is none."""
    reference = schema["oneOf"][0] if "oneOf" in schema else schema  # the second alternative is null
    return str(reference.get("$ref", "")).rpartition("/")[2].removesuffix(WRAPPED)


def _resolve_reference(document: Schema, schema: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    node: Any = document
    for step in schema["$ref"].removeprefix("#/").split("/"):
        node = node[step]
    resolved: Schema = node
    return resolved
