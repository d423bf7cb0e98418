"""The schemas of our own serializer fields and of our authentication in the API's document."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension

from checkout.api.serializers import Category, CustomData, Metadata
from config.lib import fields

# Not blank, without control characters.
PRINTABLE = r"^(?=.*\S)[^\u0000-\u001F\u007F-\u009F]*$"
WRITTEN_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"
Schema = dict[str, Any]
WRAPPED = "Response"  # ends the name of the object around what an answer holds
# The objects whose fields are not known here, the merchant's own among them, by their names in the document: without
# one, generators would number the classes that they make of them.
FREE: Schema = {
    "Metadata": {
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 500},
        "maxProperties": 50,
        "description": "Your own words to a checkout.",
    },
    "CustomData": {
        "type": "object",
        "additionalProperties": True,
        "maxProperties": 50,
        "description": "Your own words to an item.",
    },
    "OtherData": {
        "type": "object",
        "additionalProperties": True,
        "description": "What an event is about whose type was added later.",
    },
}


def refer(thing: str) -> Schema:
    """Return a reference to an object of the document."""
    return {"$ref": f"#/components/schemas/{thing}"}


def kind_of(field: Any) -> Schema | None:
    """Return the schema of a serializer field of ours, without default and null; None for one of the library's."""
    match field:
        case Category():
            return {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$"}
        case CustomData() | Metadata():
            return refer(type(field).__name__)
        case fields.OneOf():
            return {"type": "string", "enum": list(field.choices)}
        case fields.ReturnUrl():
            schemes = "https?" if settings.LOCAL else "https"
            limits = {"minLength": field.minimum, "maxLength": field.maximum}
            return {"type": "string", "format": "uri", **limits, "pattern": rf"^{schemes}://[^\s\\]+$"}
        case fields.Currency():
            return currency()
        case fields.Text():
            return text(field.minimum, field.maximum) | ({"format": field.format} if field.format else {})
        case fields.Integer():
            return {"type": "integer", "minimum": field.minimum, "maximum": field.maximum}
        case fields.Boolean():
            return {"type": "boolean"}
        case fields.Uuid():
            return {"type": "string", "format": "uuid"}
        case fields.Timestamp():  # as we read it, with any offset; `written_time` is what we write
            return {"type": "string", "format": "date-time"}
    return None


def text(minimum: int, maximum: int) -> Schema:
    """Return the schema of a text of so many characters."""
    return {"type": "string", "minLength": minimum, "maxLength": maximum, "pattern": PRINTABLE}


def currency() -> Schema:
    """Return the schema of a currency's code."""
    return {"type": "string", "pattern": "^[A-Z]{3}$"}


def values(*known: str) -> Schema:
    """Return the schema of a word that we write: one of those known today, to which others may be added."""
    return {"type": "string", "examples": [*known], "x-known-values": [*known]}


class BearerScheme(OpenApiAuthenticationExtension):
    """Client credentials; each operation names the scope that its view requires."""

    target_class = "config.merchant_api.BearerAuthentication"
    name = "oauth2"

    def get_security_requirement(self, auto_schema: Any) -> dict[str, list[Any]]:
        return {self.name: [auto_schema.view.scopes[auto_schema.method]]}

    def get_security_definition(self, auto_schema: Any) -> Schema:
        flow = {"tokenUrl": f"{settings.BASE_URL}/oauth/token", "scopes": dict(settings.SCOPES)}
        return {
            "type": "oauth2",
            "description": "Send the access token as `Authorization: Bearer <ACCESS_TOKEN>`.",
            "flows": {"clientCredentials": flow},
        }


def written_time() -> Schema:
    """Return the schema of a timestamp as we write it: UTC, with exactly three decimals."""
    return {"type": "string", "format": "date-time", "pattern": WRITTEN_TIME}
