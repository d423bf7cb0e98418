"""The schemas of our serializer fields and of our authentication, for the API's document."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension

from checkout.api.serializers import Category, CustomData, Metadata
from config.lib import fields

# Not blank, without control characters.
PRINTABLE = r"^(?=.*\S)[^\u0000-\u001F\u007F-\u009F]*$"
WRITTEN_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"
Schema = dict[str, Any]
WRAPPED = "Response"  # ends the names of the envelopes of responses
# Objects with unknown fields, such as the merchant's own data, by their names in the document. If they had no
# names, code generators would number the classes that they generate for them.
FREE: Schema = {
    "Metadata": {
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 500},
        "maxProperties": 50,
        "description": "Your own data for a checkout.",
    },
    "CustomData": {
        "type": "object",
        "additionalProperties": True,
        "maxProperties": 50,
        "description": "Your own data for an item.",
    },
    "OtherData": {
        "type": "object",
        "additionalProperties": True,
        "description": "The data of an event whose type was added later.",
    },
}


def refer(thing: str) -> Schema:
    """Return a reference to an object of the document."""
    return {"$ref": f"#/components/schemas/{thing}"}


def kind_of(field: Any) -> Schema | None:
    """Return the schema of one of our serializer fields, without default and null.

    Returns None for a field of the library.
    """
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
        case fields.Timestamp():  # received, with any offset; `written_time` is for times that we send
            return {"type": "string", "format": "date-time"}
    return None


def text(minimum: int, maximum: int) -> Schema:
    """Return the schema of a text of `minimum` to `maximum` characters."""
    return {"type": "string", "minLength": minimum, "maxLength": maximum, "pattern": PRINTABLE}


def currency() -> Schema:
    """Return the schema of a currency code."""
    return {"type": "string", "pattern": "^[A-Z]{3}$"}


def values(*known: str) -> Schema:
    """Return the schema of a word that we send: one of the words known today. More words can be added."""
    return {"type": "string", "examples": [*known], "x-known-values": [*known]}


class BearerScheme(OpenApiAuthenticationExtension):
    """The client credentials in the document. Each operation names the scope that its view requires."""

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
    """Return the schema of a timestamp that we send: UTC, with exactly three decimals."""
    return {"type": "string", "format": "date-time", "pattern": WRITTEN_TIME}
